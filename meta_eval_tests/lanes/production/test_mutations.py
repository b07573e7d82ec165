"""Every artifact is rebuilt from what it keeps: a mutation walk over one artifact of each kind, outer digest redone.

Each leaf is changed in value (also into another plausible value of its form) and in type, each key is removed, a key
is added to each object, each list entry is removed, doubled and swapped with its neighbour. All is refused, but for
the survivors in `SURVIVORS`: values that an artifact was given and that nothing else within it depends on, so that
the artifact alone cannot tell a forged one. Only the chain of digests, from artifact to artifact, can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from meta_eval.evidence import replay
from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import attestation, collection, policy, question_export, readiness
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import SMALL_POLICY, Whole, papers, scan_of, whole
from meta_eval_tests.valid_world import ASSEMBLED_AT, START, World, deep, sha

SMALL = {"cases": 6, "answerable": 4, "policy": SMALL_POLICY}
KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def _small_policy_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policy.KNOWN_POLICIES, SMALL_POLICY.digest, SMALL_POLICY)


def small() -> Whole:
    return whole(overlap=2, **SMALL)


def exported(letters: str, **changes: Any) -> Artifact:
    document = {
        "version": 1,
        "environment": "production",
        "source": "https://evidence.metmuseum.org/log",
        "logSha256": sha("log"),
        "exportedAt": written_instant(START),
        "operatorCode": "OPS-7Q",
        "questionCollectionApproved": True,
    } | changes
    judged = question_export.judge(
        scan_of(letters, newest=START - 1000),
        document,
        attestation_receipt=sha("attestation"),
        key=KEY,
        made_at=START,
        policy=SMALL_POLICY,
    )
    receipt = None if judged.blockers else sha("export")
    return question_export.seal(judged, export_receipt=receipt, made_at=START, policy=SMALL_POLICY, round_name="spring")


def attested(letters: str) -> Artifact:
    return attestation.attest(scan_of(letters), made_at=START, policy=SMALL_POLICY, round_name="spring")


def blocked_prepared() -> Artifact:
    export = World(**SMALL).export()
    export["cases"][0]["question"] = "Write to visitor@example.org"
    export["cases"][1]["caseId"] = "visitor@example.org"
    export["note"] = "canary"
    return World(**SMALL).prepared(export)


def blocked_frozen() -> Artifact:
    labels = deep(small().labels)
    labels["approval"]["approverCode"] = "Jan Jansen"
    labels["cases"][0]["relevantClaimIds"] = ["not a claim id"]
    labels["frozenAt"] = "yesterday"
    return World(**SMALL).frozen(labels)


def blocked_bundle() -> Artifact:
    broken = papers(overlap=2, **SMALL)
    broken.policy = SMALL_POLICY
    broken.observed(0)["latencyMs"] = "fast"
    broken.reviewed(1)["email"] = "visitor@example.org"
    broken.observations["precision"] = 1
    broken.release["files"].reverse()
    return broken.assembled()


def ready_bundle() -> Artifact:
    return small().bundle


def blocked_verdict() -> Artifact:
    return World(**SMALL).evaluated(blocked_bundle(), frozen=small().frozen)


def judged_collection(**changes: Any) -> Artifact:
    approval = collection.approval_template() | {
        "approverCode": "APP-1A",
        "approvedAt": written_instant(START - 60_000),
        "evidenceUrl": "https://evidence.metmuseum.org/approval",
        "receiptSha256": sha("approval"),
    }
    return collection.judge(
        approval | changes, approval_receipt=sha("file"), switch=True, made_at=START, policy=SMALL_POLICY
    )


def judged_release(value: Any = None, *, missing: int = 0) -> Artifact:
    return readiness.judge(
        readiness.believed(value or small().verdict, source="metrics"),
        verdict_receipt=sha("metrics"),
        release_manifest=World(**SMALL).release(),
        release_receipt=sha("release"),
        release_files={"missing": missing, "changed": 0, "unlisted": 0},
        made_at=ASSEMBLED_AT + 60_000,
        policy=SMALL_POLICY,
    )


ARTIFACTS = {
    "collection-readiness ready-for-runtime-activation": judged_collection,
    "collection-readiness awaiting-human-approval": lambda: judged_collection(approverCode="Jan Jansen"),
    "collection-readiness approval-mismatch": lambda: judged_collection(contractSha256=sha("another")),
    "release-readiness ready": judged_release,
    "release-readiness blocked": lambda: judged_release({"artifact": "golden-gate", "evidenceClass": "regression"}),
    "query-log-attestation ready": lambda: attested("m2e6"),
    "query-log-attestation blocked": lambda: attested("m7"),
    "question-export ready": lambda: exported("m2e6"),
    "question-export blocked": lambda: exported("e2", operatorCode="Jan Jansen", note="canary"),
    "prepared-manifest ready": lambda: small().prepared,
    "prepared-manifest blocked": blocked_prepared,
    "frozen-labels ready": lambda: small().frozen,
    "frozen-labels blocked": blocked_frozen,
    "run-kit ready": lambda: small().kit,
    "run-kit blocked": lambda: World(**SMALL).kit({"version": 1, "operatorCode": "APP-1A"}, small().frozen),
    "assembled-bundle ready": ready_bundle,
    "assembled-bundle blocked": blocked_bundle,
    "production-metrics passed": lambda: small().verdict,
    "production-metrics blocked": blocked_verdict,
}

# Why a value that was changed cannot be told from the one that was there, and where that is so.
CLOCK = "when it was made: no rule of this artifact turns over between these two instants"
ROUND = "which round it belongs to: nothing in it depends on the name"
INPUT = "the receipt or digest of what it was made from, which only the chain can compare with the thing itself"
OPTIONAL = "the reference was given on the command line, so there was no file to have a receipt"
ORDER = "rows are a set: nothing that is computed depends on their order"
GIVEN = "the word of a person or of the log, kept as given, of the same form and within the same rules"
BLOCKED = "a value that no named blocker speaks about, in an artifact that stays blocked by the same blockers"

_ALWAYS = {CLOCK: "/madeAt value", ROUND: "/round type"}
_UNUSED_MANIFEST = """
    /replay/manifest/approval/approvedAt value
    /replay/manifest/approval/evidenceUrl value
    /replay/manifest/approval/receiptSha256 value
    /replay/manifest/cases emptied
    /replay/manifest/cases reversed
    /replay/manifest/cases truncated
    /replay/manifest/cases/* doubled
    /replay/manifest/cases/* removed
    /replay/manifest/cases/* swapped
    /replay/manifest/cases/*/caseId value
    /replay/manifest/cases/*/questionSha256 value
    /replay/manifest/cases/*/relevantClaimIds emptied
    /replay/manifest/cases/*/relevantClaimIds/* doubled
    /replay/manifest/cases/*/relevantClaimIds/* removed
    /replay/manifest/cases/*/relevantClaimIds/* value
    /replay/manifest/cases/*/shouldRefuse value
    /replay/manifest/exportSha256 value
    /replay/manifest/frozenAt value
    /replay/manifest/preparedManifestDigest value
    /replay/manifest/source value
"""
_BUNDLE = {
    OPTIONAL: "/inputs/evidenceReference removed",
    INPUT: """
        /inputs/evidenceReference/receipt value
        /inputs/frozenLabels/digest value
        /inputs/observations/receipt value
        /inputs/releaseManifest/receipt value
        /inputs/reviews/receipt value
        /inputs/runKit/digest value
    """,
    ORDER: """
        /replay/observations/observations reversed
        /replay/observations/observations/* swapped
        /replay/reviews/reviews reversed
        /replay/reviews/reviews/* swapped
    """,
}
_EXPORT = {
    ROUND: "/round type\n/round value",
    INPUT: "/inputs/attestation/receipt value\n/inputs/pseudonymKey/digest value",
}

_APPROVED = """
    /replay/approval/approvedAt value
    /replay/approval/evidenceUrl value
    /replay/approval/receiptSha256 value
"""
_COLLECTION = {ROUND: "", INPUT: "/inputs/approval/receipt value"}

SURVIVORS: dict[str, dict[str, str]] = {
    "collection-readiness ready-for-runtime-activation": {
        **_COLLECTION,
        GIVEN: f"{_APPROVED}\n/replay/approval/approverCode value",
    },
    "collection-readiness awaiting-human-approval": {**_COLLECTION, BLOCKED: _APPROVED},
    "collection-readiness approval-mismatch": {
        **_COLLECTION,
        BLOCKED: f"{_APPROVED}\n/replay/approval/approverCode value\n/replay/approval/contractSha256 value",
    },
    "release-readiness ready": {ROUND: "", INPUT: "/inputs/releaseManifest/receipt value"},
    "release-readiness blocked": {
        INPUT: "/inputs/productionMetrics/receipt value\n/inputs/releaseManifest/receipt value",
    },
    "query-log-attestation ready": {ROUND: "/round type\n/round value"},
    "query-log-attestation blocked": {ROUND: "/round type\n/round value"},
    "question-export ready": {
        **_EXPORT,
        GIVEN: """
            /replay/attestation/exportedAt value
            /replay/attestation/operatorCode value
            /replay/attestation/source value
            /replay/newestAskedAt value
        """,
    },
    "question-export blocked": {
        **_EXPORT,
        GIVEN: """
            /replay/attestation/exportedAt value
            /replay/attestation/source value
            /replay/newestAskedAt value
        """,
    },
    "prepared-manifest ready": {
        INPUT: "/inputs/questionExport/receipt value",
        ORDER: "/replay/export/cases reversed\n/replay/export/cases/* swapped",
        GIVEN: "/replay/export/cases/*/normalizedLength value",
    },
    "prepared-manifest blocked": {
        INPUT: "/inputs/questionExport/receipt value",
        ORDER: "/replay/export/cases reversed\n/replay/export/cases/* swapped",
        GIVEN: "/replay/export/cases/*/normalizedLength value",
        BLOCKED: "/replay/export/cases/*/questionSha256 value",
    },
    "frozen-labels ready": {INPUT: "/inputs/labels/receipt value", GIVEN: "/replay/prepared/madeAt value"},
    "frozen-labels blocked": {
        INPUT: "/inputs/labels/receipt value",
        GIVEN: "/replay/prepared/madeAt value",
        ORDER: "/replay/labels/cases reversed\n/replay/labels/cases/* swapped",
        BLOCKED: """
            /replay/labels/approval/approvedAt value
            /replay/labels/approval/evidenceUrl value
            /replay/labels/approval/receiptSha256 value
        """,
    },
    "run-kit ready": {INPUT: "/inputs/frozenLabels/digest value"},
    "run-kit blocked": {INPUT: "/inputs/frozenLabels/digest value", BLOCKED: _UNUSED_MANIFEST},
    "assembled-bundle ready": _BUNDLE,
    "assembled-bundle blocked": {
        **_BUNDLE,
        BLOCKED: """
            /replay/evidenceReference/evidenceUrl value
            /replay/evidenceReference/receiptSha256 value
            /replay/observations/observations/*/observedAt value
            /replay/observations/observations/*/traceSha256 value
            /replay/releaseManifest/files/* doubled
            /replay/releaseManifest/files/*/path value
            /replay/releaseManifest/files/*/sha256 value
            /replay/reviews/reviews/*/decisions/*/supported value
            /replay/reviews/reviews/*/evidenceUrl value
            /replay/reviews/reviews/*/receiptSha256 value
            /replay/reviews/reviews/*/reviewedAt value
        """,
    },
    "production-metrics passed": {INPUT: "/inputs/assembledBundle/digest value"},
    "production-metrics blocked": {
        INPUT: "/inputs/assembledBundle/digest value\n/inputs/frozenLabels/digest value",
        BLOCKED: f"""
            /replay/assembled/frozenDigest value
            /replay/manifest/approval/approverCode value
            {_UNUSED_MANIFEST}
        """,
    },
}


def accepted_survivors(name: str) -> set[str]:
    tables = {**_ALWAYS, **SURVIVORS[name]}
    return {line.strip() for lines in tables.values() for line in lines.splitlines() if line.strip()}


# --- the walk ----------------------------------------------------------------------------------------------------


def others(value: Any) -> list[Any]:
    """Values to put in place of a leaf: another one of its form, one of its type, and ones of other types."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int | float):
        return [value + 1, -value - 1, str(value), None]
    if isinstance(value, str):
        return [*_likely(value), 7, None, {"refused": "not-a-code"}]
    return ["x", 0, {}, sha("x"), "https://evidence.metmuseum.org/x", "2026-11-01T09:00:00.000Z"]


def _likely(value: Any) -> list[Any]:
    if isinstance(value, str):
        return list(_plausible(value)) or [f"{value}x"]
    return others(value)[:1]


def _plausible(value: str) -> Iterator[str]:
    if re.fullmatch(r"[0-9a-f]{64}", value):
        yield sha(value)
    if (ms := instant_ms(value)) is not None:
        yield written_instant(ms + 1)
        yield written_instant(ms - 1)
    if re.fullmatch(r"case-[0-9a-f]{20}", value):
        yield f"case-{sha(value)[:20]}"
    if re.fullmatch(r"(?=.*[A-Z])[A-Z0-9-]+", value):
        yield f"{value}Q"
    yield from {"ready": ["blocked"], "blocked": ["ready"], "production": ["rehearsal"]}.get(value, [])


def pointers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part. Of entries that are alike, cases above all, the fullest one stands for the others."""
    yield path
    if isinstance(node, list) and node:
        fullest = max(range(len(node)), key=lambda index: len(str(node[index])))
        yield from pointers(node[fullest], (*path, fullest))
    elif isinstance(node, dict):
        cases = [key for key in node if key.startswith("case-")]
        for key in [key for key in node if key not in cases[1:]]:
            yield from pointers(node[key], (*path, key))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def mutations(artifact: Artifact) -> Iterator[tuple[str, Artifact]]:
    """Each mutation's name (`/pointer what`) with the whole mutated artifact, its outer digest recomputed."""
    for path in pointers(artifact):
        if path in ((), ("digest",)):
            continue
        here = "/" + "/".join("*" if isinstance(key, int) or key.startswith("case-") else key for key in path)
        for what, edit in _edits(at(artifact, path), brief=artifact["status"] == "blocked"):
            mutated = deep(artifact)
            edit(at(mutated, path[:-1]), path[-1])
            yield f"{here} {what}", mutated
    for path in pointers(artifact):
        if isinstance(at(artifact, path), dict):
            mutated = deep(artifact)
            at(mutated, path)["extra"] = "canary"
            yield "/" + "/".join(map(str, path)) + " a key added", mutated


def forgeries(artifact: Artifact) -> Iterator[tuple[str, Artifact]]:
    """The mutations that change something, each with its outer digest computed anew."""
    for place, mutant in mutations(artifact):
        mutant["digest"] = digest_of(mutant)
        if mutant["digest"] != artifact["digest"]:  # not 1 into 1.0, or a swap of equals: provably no change
            yield place, mutant


def _edits(value: Any, *, brief: bool) -> Iterator[tuple[str, Any]]:
    def replaced_by(other: Any) -> Any:
        return lambda parent, key: parent.__setitem__(key, other)

    if not isinstance(value, dict | list):
        for other in [*_likely(value), None] if brief else others(value):
            kept = type(other) is type(value)
            yield "value" if kept else "type", replaced_by(other)
    else:
        yield "type", replaced_by("x")
        yield "type", replaced_by(None)
        yield "emptied", replaced_by(type(value)())
        yield "type", replaced_by([] if isinstance(value, dict) else {})
    if isinstance(value, list) and len(value) > 1:
        yield "reversed", replaced_by(value[::-1])
        yield "truncated", replaced_by(value[:-1])
    yield "removed", lambda parent, key: parent.pop(key)

    def doubled(parent: Any, key: Any) -> None:
        if isinstance(parent, list):
            parent.insert(key, parent[key])

    def swapped(parent: Any, key: Any) -> None:
        if isinstance(parent, list) and len(parent) > 1:
            parent[key], parent[key - 1] = parent[key - 1], parent[key]

    yield "doubled", doubled
    yield "swapped", swapped


def survivors(artifact: Artifact) -> tuple[set[str], int]:
    """The names of the mutations that verification accepts, and how many were tried."""
    found, tried = set(), 0
    for name, mutated in forgeries(artifact):
        tried += 1
        try:
            replay.verified(mutated, REBUILDS)
        except VerificationError:
            continue
        found.add(name)
    return found, tried


# --- what the walk must find -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARTIFACTS)
def test_an_honest_artifact_verifies(name: str) -> None:
    artifact = ARTIFACTS[name]()
    assert name == f"{artifact['artifact']} {artifact['status']}"
    assert replay.verified(deep(artifact), REBUILDS) == deep(artifact)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_a_forged_artifact_does_not_verify_but_for_the_survivors_that_are_listed(name: str) -> None:
    found, tried = survivors(ARTIFACTS[name]())
    print(f"{name}: {tried} mutations, {len(found)} kinds of survivors")  # noqa: T201 - the count is to be seen
    assert tried > 100
    assert found == accepted_survivors(name)


def test_no_survivor_is_a_figure_a_status_a_blocker_or_an_authority() -> None:
    lines = {line for name in ARTIFACTS for line in accepted_survivors(name)}
    parts = ("/status", "/result", "/blockers", "/authority", "/policyDigest", "/environment", "/evidenceClass")
    assert not [line for line in lines if line.startswith(parts)]


def redone(artifact: Artifact) -> Artifact:
    return artifact | {"digest": digest_of(artifact)}


def test_a_refused_value_cannot_be_put_back_into_a_blocked_artifact() -> None:
    artifact = deep(blocked_bundle())
    row = next(row for row in artifact["replay"]["observations"]["observations"] if isinstance(row["latencyMs"], dict))
    row["latencyMs"] = "fast"
    with pytest.raises(VerificationError, match="differs"):
        replay.verified(redone(artifact), REBUILDS)


def test_an_unknown_key_cannot_be_put_back_into_a_blocked_artifact() -> None:
    artifact = deep(blocked_prepared())
    assert artifact["replay"]["export"].pop("refusedKeys") == {"unknown-key": 1}
    artifact["replay"]["export"]["note"] = "canary"
    with pytest.raises(VerificationError, match="differs"):
        replay.verified(redone(artifact), REBUILDS)


def test_a_rehearsal_cannot_be_rewritten_into_a_pass() -> None:
    artifact = deep(whole(environment="rehearsal", **SMALL).verdict)
    assert artifact["status"] == "rehearsed"
    for part in (artifact, artifact["replay"]["frozen"], artifact["replay"]["bundle"]):
        part["environment"] = "production"
    artifact |= {"status": "passed", "evidenceClass": "production"}
    with pytest.raises(VerificationError):
        replay.verified(redone(artifact), REBUILDS)


@pytest.mark.parametrize(
    "forge",
    [
        lambda a: a["result"]["metrics"]["precision"].update(numerator=0, value=0.0),
        lambda a: a["result"].update(missed=["recall"]),
        lambda a: a.update(status="failed"),
        lambda a: a["replay"]["bundle"]["cases"].pop(),
        lambda a: a["replay"]["bundle"]["cases"][0].update(question="canary"),
        lambda a: a["inputs"].update(extra={"receipt": sha("x")}),
        lambda a: a["inputs"]["frozenLabels"].update(digest="canary words"),
        lambda a: a["authority"].update(permitsPublication=True),
    ],
)
def test_an_edited_figure_row_input_or_permission_does_not_verify(forge: Any) -> None:
    artifact = deep(small().verdict)
    forge(artifact)
    with pytest.raises(VerificationError):
        replay.verified(redone(artifact), REBUILDS)
