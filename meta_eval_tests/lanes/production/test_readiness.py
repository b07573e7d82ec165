"""Stage 9: each way not to be ready, broken one at a time from a whole production round that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.evidence.artifacts import Artifact, Blocker, digest_of, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.lanes.production import metrics, policy, readiness
from meta_eval.lanes.production.policy import CURRENT_POLICY, Policy
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import OTHER_POLICY, Breaks, scored, whole
from meta_eval_tests.valid_world import ASSEMBLED_AT, OBSERVED_AT, World, blockers, deep, sha

# The oldest of the 60 traces is of OBSERVED_AT, and a trace is fresh for 35 days, to the millisecond.
LAST_FRESH = OBSERVED_AT + 35 * DAY_MS
METRICS = "productionMetrics"
BREAKS = Breaks()


@dataclass
class Case:
    """What readiness is judged on, each part open to being broken."""

    value: Any
    release: Any
    made_at: int = LAST_FRESH
    policy: Policy = CURRENT_POLICY
    files: dict[str, int] | None = None
    round_name: str | None = None
    verdict_receipt: str | None = sha("metrics")
    release_receipt: str | None = sha("release")

    def judged(self) -> Artifact:
        verdict = (
            readiness.Verdict(None, "metrics-missing")
            if self.verdict_receipt is None
            else readiness.believed(self.value, source="metrics")
        )
        return readiness.judge(
            verdict,
            verdict_receipt=self.verdict_receipt,
            release_manifest=self.release,
            release_receipt=self.release_receipt,
            release_files=self.files,
            made_at=self.made_at,
            policy=self.policy,
            round_name=self.round_name,
        )


def case(**size: Any) -> Case:
    made = whole(**size)
    return Case(deep(made.verdict), made.world.release())


def states(artifact: Artifact) -> dict[str, str]:
    return {entry["requirement"]: entry["state"] for entry in artifact["result"]["requirements"]}


def of_class(evidence_class: str, environment: str | None = None) -> Artifact:
    """An artifact of another lane, made by hand and whole by its own digest."""
    return sealed(
        kind="golden-gate",
        environment=environment,
        round_name=None,
        status="passed",
        blockers=[],
        policy_digest=CURRENT_POLICY.digest,
        made_at_ms=ASSEMBLED_AT,
        inputs={},
        result={"passed": 120},
        replay={},
        authority={},
        evidence_class=evidence_class,
    )


def test_a_passed_fresh_production_verdict_of_this_release_is_ready() -> None:
    judged = case().judged()
    assert (judged["status"], judged["blockers"]) == ("ready", [])
    assert set(states(judged).values()) == {"met"}
    assert judged["environment"] == judged["evidenceClass"] == "production"
    assert judged["result"]["freshUntil"] == written_instant(LAST_FRESH)
    assert judged["result"]["releaseDigest"] == digest(World().release())
    assert judged["inputs"][METRICS] == {"digest": whole().verdict["digest"]}
    assert verified(deep(judged), REBUILDS) == deep(judged)


def test_it_authorises_nothing_and_says_so() -> None:
    authority = case().judged()["authority"]
    assert not any(value for key, value in authority.items() if key != "statement")
    assert all(word in authority["statement"] for word in ("publication", "contact", "payment", "model run"))


@BREAKS(("metrics-missing", METRICS, 1))
def there_is_no_verdict(broken: Case) -> None:
    broken.verdict_receipt = None


@BREAKS(("metrics-not-verified", METRICS, 1))
def a_figure_is_typed_in_by_hand(broken: Case) -> None:
    broken.value["result"]["metrics"]["precision"]["numerator"] += 1
    broken.value["digest"] = digest_of(broken.value)


@BREAKS(("metrics-not-verified", METRICS, 1))
def the_digest_of_the_verdict_is_another(broken: Case) -> None:
    broken.value["digest"] = sha("another")


@BREAKS(("metrics-not-verified", METRICS, 1))
def the_file_is_no_artifact(broken: Case) -> None:
    broken.value = ["passed"]


@BREAKS(("rehearsal-refused", METRICS, 1))
def the_verdict_is_of_a_rehearsal(broken: Case) -> None:
    rehearsed = case(environment="rehearsal")
    broken.value, broken.release = rehearsed.value, rehearsed.release


@BREAKS(("regression-evidence-refused", METRICS, 1))
def the_verdict_is_of_the_golden_gate(broken: Case) -> None:
    broken.value = of_class("regression")


@BREAKS(("evidence-class-refused", METRICS, 1))
def the_evidence_is_of_a_class_of_its_own(broken: Case) -> None:
    broken.value = of_class("unattested")


@BREAKS(("not-production-metrics", METRICS, 1))
def a_bundle_is_given_for_a_verdict(broken: Case) -> None:
    broken.value = deep(whole().bundle)


@BREAKS(("verdict-failed", METRICS, 1))
def the_verdict_is_failed(broken: Case) -> None:
    def slow(document: Any) -> None:
        for row in document["observations"]:
            row["latencyMs"] = 10_001

    broken.value = deep(scored(World(), observations=slow).verdict)
    assert broken.value["status"] == "failed"


@BREAKS(("verdict-blocked", METRICS, 1))
def the_verdict_is_blocked(broken: Case) -> None:
    # Judged too early, when its traces were still to come; today nothing else is wrong with it.
    broken.value = deep(World().evaluated(whole().bundle, frozen=whole().frozen, made_at=OBSERVED_AT - 1))
    assert broken.value["status"] == "blocked"


@BREAKS(("trace-stale", METRICS, 1))
def a_trace_is_stale_by_a_millisecond(broken: Case) -> None:
    broken.made_at = LAST_FRESH + 1


@BREAKS(("verdict-in-the-future", METRICS, 1))
def the_verdict_is_of_a_time_to_come(broken: Case) -> None:
    broken.made_at = ASSEMBLED_AT - 1


@BREAKS(("trace-in-the-future", METRICS, 1), ("verdict-in-the-future", METRICS, 1))
def a_trace_is_of_a_time_to_come(broken: Case) -> None:
    broken.made_at = OBSERVED_AT + 58  # traces are a millisecond apart, and there are 60


@BREAKS(("metrics-of-another-round", METRICS, 1))
def the_verdict_is_of_another_round(broken: Case) -> None:
    broken.round_name = "spring"


@BREAKS(("policy-changed-after-freeze", METRICS, 1))
def the_policy_changed_after_the_freeze(broken: Case) -> None:
    broken.policy = replace(OTHER_POLICY, freshness_days=35)


@BREAKS(("release-mismatch", "releaseManifest", 1))
def the_release_is_another(broken: Case) -> None:
    broken.release["files"][0]["sha256"] = sha("newer")


@BREAKS(("release-manifest-missing", "releaseManifest", 1))
def there_is_no_release_manifest(broken: Case) -> None:
    broken.release_receipt = None


@BREAKS(("missing-key", "releaseManifest.files[].sha256", 1))
def a_file_of_the_release_has_no_digest(broken: Case) -> None:
    del broken.release["files"][0]["sha256"]


@BREAKS(("release-without-files", "releaseManifest.files", 0))
def the_release_has_no_file(broken: Case) -> None:
    broken.release["files"] = []


@BREAKS(("release-paths-not-ascending", "releaseManifest.files", 1))
def the_files_of_the_release_are_not_in_order(broken: Case) -> None:
    broken.release["files"].reverse()


@BREAKS(("release-file-missing", "releaseFiles", 2))
def files_of_the_release_are_missing(broken: Case) -> None:
    broken.files = {"missing": 2, "changed": 0, "unlisted": 0}


@BREAKS(("release-file-changed", "releaseFiles", 1))
def a_file_of_the_release_has_other_bytes(broken: Case) -> None:
    broken.files = {"missing": 0, "changed": 1, "unlisted": 0}


@BREAKS(("release-file-unlisted", "releaseFiles", 1))
def a_file_was_added_to_the_release(broken: Case) -> None:
    broken.files = {"missing": 0, "changed": 0, "unlisted": 1}


@pytest.mark.parametrize(("break_", "expected"), BREAKS.params)
def test_a_release_is_not_ready_and_the_reason_is_named(break_: Callable[[Any], Any], expected: set[Any]) -> None:
    broken = case()
    break_(broken)
    judged = broken.judged()
    assert (judged["status"], blockers(judged)) == ("blocked", expected)
    codes = {code for entry in judged["result"]["requirements"] for code in entry["codes"]}
    assert codes == {code for code, _, _ in expected}, "each blocker misses a requirement"
    assert not any(value for key, value in judged["authority"].items() if key != "statement")
    if judged["policyDigest"] == CURRENT_POLICY.digest:
        assert verified(deep(judged), REBUILDS) == deep(judged)


def test_what_cannot_be_judged_is_unknown_and_unknown_is_not_met() -> None:
    broken = case()
    broken.verdict_receipt = broken.release_receipt = None
    judged = broken.judged()
    assert states(judged) == {
        "metrics-verified": "missed",
        "production-evidence": "unknown",
        "verdict-passed": "unknown",
        "policy-unchanged": "unknown",
        "release-manifest-whole": "missed",
        "release-matches": "unknown",
        "traces-fresh": "unknown",
    }
    assert judged["inputs"] == {}


def test_every_fault_is_reported_not_the_first_only() -> None:
    broken = case(environment="rehearsal")
    broken.made_at = LAST_FRESH + 2
    broken.release["files"][0]["sha256"] = sha("newer")
    assert blockers(broken.judged()) == {
        ("rehearsal-refused", METRICS, 1),
        ("release-mismatch", "releaseManifest", 1),
        ("trace-stale", METRICS, 2),
    }


def test_a_verdict_that_is_not_believed_leaves_nothing_of_itself() -> None:
    broken = case()
    broken.value["result"]["note"] = "canary"
    broken.value["digest"] = digest_of(broken.value)
    assert "canary" not in str(broken.judged())


def test_white_space_of_a_manifest_does_not_break_the_receipt() -> None:
    # The digest is of the parsed value: an equal value from other bytes has another receipt and the same digest.
    one, other = case(), case()
    other.release_receipt = sha("the same manifest, printed in lines")
    assert other.judged()["status"] == "ready"
    assert one.judged()["result"]["releaseDigest"] == other.judged()["result"]["releaseDigest"]


def test_a_verdict_in_a_readiness_cannot_be_exchanged_or_edited() -> None:
    judged = deep(case().judged())
    judged["replay"]["metrics"]["result"]["metrics"]["recall"]["numerator"] -= 1
    judged["replay"]["metrics"]["digest"] = digest_of(judged["replay"]["metrics"])
    judged["result"]["metricsDigest"] = judged["replay"]["metrics"]["digest"]
    judged["inputs"][METRICS] = {"digest": judged["replay"]["metrics"]["digest"]}
    judged["digest"] = digest_of(judged)
    with pytest.raises(VerificationError):
        verified(judged, REBUILDS)


@given(st.integers(min_value=-3, max_value=3))
def test_readiness_turns_over_at_one_millisecond(offset: int) -> None:
    judged = readiness.judge(
        readiness.Verdict(whole().verdict),
        verdict_receipt=sha("metrics"),
        release_manifest=World().release(),
        release_receipt=sha("release"),
        made_at=LAST_FRESH + offset,
        policy=policy.CURRENT_POLICY,
    )
    assert (judged["status"] == "ready") is (offset <= 0)


def test_a_blocker_keeps_its_requirement() -> None:
    assert set(readiness.REFUSALS.values()) <= set(readiness.REQUIREMENTS)
    assert Blocker("metrics-missing", METRICS).document["count"] == 1
    assert metrics.KIND == "production-metrics"
