"""Stage 3: nothing is exported unless a person attests to this very log and 50 questions remain."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.pseudonyms import case_id
from meta_eval.lanes.production.question_export import judge, public_receipt, seal
from meta_eval_tests.lanes.production.broken import scan_of
from meta_eval_tests.valid_world import START, blockers, sha

KEY = bytes(range(32))
NEWEST = START - DAY_MS


def attestation(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "production",
        "source": "https://evidence.metmuseum.org/log",
        "logSha256": sha("log"),
        "exportedAt": written_instant(START),
        "operatorCode": "OPS-7Q",
        "questionCollectionApproved": True,
    } | changes


def exported(document: Any, letters: str = "e50", *, made_at: int = START, newest: int | None = NEWEST) -> Any:
    judged = judge(
        scan_of(letters, newest=newest),
        document,
        attestation_receipt=sha("attestation"),
        key=KEY,
        made_at=made_at,
        policy=CURRENT_POLICY,
    )
    written = None if judged.blockers else sha("export")
    return seal(judged, export_receipt=written, made_at=made_at, policy=CURRENT_POLICY)


def test_an_attested_log_with_fifty_questions_is_exported() -> None:
    artifact = exported(attestation(), "e50m7")
    assert (artifact["status"], blockers(artifact)) == ("ready", set())
    assert artifact["result"]["caseCount"] == 50
    assert artifact["result"]["rowCount"] == 57
    assert (artifact["environment"], artifact["evidenceClass"]) == ("production", "production")


@pytest.mark.parametrize(
    ("letters", "expected"),
    [("e49m9", {("too-few-eligible-questions", "queryLog", 49)}), ("e50", set()), ("e51", set())],
)
def test_at_least_50_eligible_questions_must_remain(letters: str, expected: set[Any]) -> None:
    assert blockers(exported(attestation(), letters)) == expected


@pytest.mark.parametrize(
    ("changes", "code", "key"),
    [
        ({"environment": None}, "not-an-environment", "environment"),
        ({"environment": "staging"}, "not-an-environment", "environment"),
        ({"source": "http://evidence.metmuseum.org/log"}, "url-not-https", "source"),
        ({"source": None}, "url-not-a-string", "source"),
        ({"logSha256": sha("another log")}, "log-receipt-mismatch", "logSha256"),
        ({"logSha256": None}, "not-a-sha256", "logSha256"),
        ({"exportedAt": None}, "not-an-instant", "exportedAt"),
        ({"operatorCode": "Jan Jansen"}, "not-a-code", "operatorCode"),
        ({"questionCollectionApproved": False}, "question-collection-not-approved", "questionCollectionApproved"),
        ({"questionCollectionApproved": None}, "question-collection-not-approved", "questionCollectionApproved"),
        ({"questionCollectionApproved": "true"}, "question-collection-not-approved", "questionCollectionApproved"),
        ({"questionCollectionApproved": 1}, "question-collection-not-approved", "questionCollectionApproved"),
        ({"version": 2}, "not-version-1", "version"),
    ],
)
def test_each_word_of_the_attestation_is_needed(changes: dict[str, Any], code: str, key: str) -> None:
    artifact = exported(attestation(**changes))
    assert blockers(artifact) == {(code, f"attestation.{key}", 1)}
    assert artifact["result"]["exportSha256"] is None
    assert artifact["result"]["caseCount"] == 0
    assert "Jansen" not in json.dumps(artifact)


def test_the_blank_template_blocks_on_each_of_its_blanks() -> None:
    blank = dict.fromkeys(("environment", "source", "exportedAt", "operatorCode", "questionCollectionApproved"))
    assert blockers(exported(attestation(**blank))) == {
        ("not-an-environment", "attestation.environment", 1),
        ("url-not-a-string", "attestation.source", 1),
        ("not-an-instant", "attestation.exportedAt", 1),
        ("not-a-code", "attestation.operatorCode", 1),
        ("question-collection-not-approved", "attestation.questionCollectionApproved", 1),
    }


@pytest.mark.parametrize(
    ("exported_at", "expected"),
    [
        (START, set()),
        (START + 1, {("attestation-in-the-future", "attestation.exportedAt", 1)}),
        (START - 7 * DAY_MS, set()),
        (START - 7 * DAY_MS - 1, {("attestation-stale", "attestation.exportedAt", 1)}),
    ],
)
def test_the_attestation_is_of_the_last_seven_days(exported_at: int, expected: set[Any]) -> None:
    document = attestation(exportedAt=written_instant(exported_at))
    assert blockers(exported(document, newest=START - 10 * DAY_MS)) == expected


@pytest.mark.parametrize(
    ("after_newest", "expected"),
    [(0, set()), (-1, {("attestation-before-newest-row", "attestation.exportedAt", 1)})],
)
def test_the_attestation_is_not_older_than_the_newest_row(after_newest: int, expected: set[Any]) -> None:
    assert blockers(exported(attestation(exportedAt=written_instant(NEWEST + after_newest)))) == expected


def test_every_fault_is_reported_not_the_first_only() -> None:
    document = attestation(logSha256=sha("x"), operatorCode="me", note="canary words", userEmail="canary words")
    artifact = exported(document, "e3")
    assert blockers(artifact) == {
        ("log-receipt-mismatch", "attestation.logSha256", 1),
        ("not-a-code", "attestation.operatorCode", 1),
        ("unknown-key", "attestation", 1),
        ("identifying-field", "attestation", 1),
        ("too-few-eligible-questions", "queryLog", 3),
    }
    assert "canary" not in json.dumps(artifact)


@pytest.mark.parametrize("document", [None, [], "yes", {}])
def test_what_is_no_attestation_is_blocked_and_never_crashes(document: Any) -> None:
    assert exported(document)["status"] == "blocked"


def test_a_receipt_is_given_exactly_where_an_export_was_written() -> None:
    scan = scan_of("e50", newest=NEWEST)
    for letters, receipt in (("e50", None), ("e49", sha("export"))):
        judged = judge(
            scan if letters == "e50" else scan_of(letters, newest=NEWEST),
            attestation(),
            attestation_receipt=sha("attestation"),
            key=KEY,
            made_at=START,
            policy=CURRENT_POLICY,
        )
        with pytest.raises(ValueError, match="only there"):
            seal(judged, export_receipt=receipt, made_at=START, policy=CURRENT_POLICY)


def test_a_case_id_is_the_keyed_hash_of_the_query_id() -> None:
    by_hand = hmac.new(KEY, b"query-17", hashlib.sha256).hexdigest()[:20]
    assert case_id("query-17", KEY) == f"case-{by_hand}"
    assert hashlib.sha256(b"query-17").hexdigest()[:20] not in case_id("query-17", KEY), "not guessable from an id"


@given(st.text(max_size=40), st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_pseudonyms_repeat_under_a_key_and_cannot_be_linked_across_keys(
    query_id: str, one: bytes, other: bytes
) -> None:
    assert case_id(query_id, one) == case_id(query_id, one)
    assert (case_id(query_id, one) == case_id(query_id, other)) is (one == other)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_is_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        case_id("query-17", bytes(length))


def test_the_public_receipt_holds_counts_and_digests_only() -> None:
    receipt = public_receipt(exported(attestation(), "e50m7"))
    assert receipt["pseudonymKeySha256"] == hashlib.sha256(KEY).hexdigest()
    assert receipt["caseCount"] == 50
    assert KEY.hex() not in json.dumps(receipt)
    assert "metmuseum" not in json.dumps(receipt)
    assert "OPS-7Q" not in json.dumps(receipt)
