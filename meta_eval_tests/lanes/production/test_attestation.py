"""Stage 2: what a log amounts to, told from outcome codes alone."""

from __future__ import annotations

from typing import Any

import pytest

from meta_eval.evidence import replay
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production.attestation import attest
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import OUTCOMES
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import scan_of
from meta_eval_tests.valid_world import START, blockers, deep, sha


def attested(letters: str) -> Any:
    return attest(scan_of(letters), made_at=START, policy=CURRENT_POLICY)


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("e49m100", {("too-few-eligible-questions", "queryLog", 49)}),
        ("e50", set()),
        ("e51", set()),
        ("m2497", {("too-few-eligible-questions", "queryLog", 0)}),
        ("", {("no-rows", "queryLog", 0), ("too-few-eligible-questions", "queryLog", 0)}),
    ],
)
def test_fifty_eligible_questions_make_a_log_ready(letters: str, expected: set[Any]) -> None:
    artifact = attested(letters)
    assert blockers(artifact) == expected
    assert artifact["status"] == ("blocked" if expected else "ready")


def test_counts_are_those_of_the_outcome_codes() -> None:
    result = attested("m3nw2ufs4cbl5d6e50")["result"]
    # By hand, letter by letter in the order of the outcomes.
    counts = [3, 1, 2, 1, 1, 4, 1, 1, 5, 6, 50]
    assert [result["outcomes"][name] for name in OUTCOMES] == counts
    assert result["rowCount"] == 75


def test_the_attestation_is_a_template_whose_judgements_are_blank() -> None:
    artifact = attested("e50")
    assert artifact["result"]["attestationTemplate"] == {
        "version": 1,
        "environment": None,
        "source": None,
        "logSha256": sha("log"),
        "exportedAt": None,
        "operatorCode": None,
        "questionCollectionApproved": None,
    }
    assert (artifact["environment"], artifact["evidenceClass"]) == (None, "unattested")
    assert artifact["authority"]["provesProductionTraffic"] is False
    assert artifact["authority"]["permitsExport"] is False


def test_one_code_a_row_is_kept_and_nothing_else() -> None:
    assert attested("m3e50")["replay"] == {"byteCount": 1000, "outcomeRuns": "m3e50"}


@pytest.mark.parametrize("runs", ["e51", "e49m", "e50x", "e1m", "e25e25", "e", "", 50, None, "e99999999999"])
def test_other_outcome_codes_never_rebuild_the_same_attestation(runs: Any) -> None:
    forged = deep(attested("e50"))
    forged["replay"]["outcomeRuns"] = runs
    forged["digest"] = digest({key: value for key, value in forged.items() if key != "digest"})
    with pytest.raises(VerificationError):
        replay.verified(forged, REBUILDS)


@pytest.mark.parametrize("letters", ["e50", "m3nw2ufs4cbl5d6e50", "m7", ""])
def test_ready_and_blocked_attestations_rebuild(letters: str) -> None:
    assert replay.verified(deep(attested(letters)), REBUILDS)["replay"]["outcomeRuns"] == letters
