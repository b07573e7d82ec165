"""The policy: the values of the source, frozen, bound to every artifact and kept under lock."""

from __future__ import annotations

import hashlib
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence import replay
from meta_eval.evidence.artifacts import digest_of
from meta_eval.evidence.canonical import digest, read_document
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import policy
from meta_eval.lanes.production.policy import CURRENT_POLICY, PRODUCTION_POLICY_V1
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import OTHER_POLICY, SMALL_POLICY, whole
from meta_eval_tests.valid_world import World, deep

RUBRICS = Path(__file__).parents[3] / "rubrics"


def test_the_thresholds_are_those_of_the_source() -> None:
    assert PRODUCTION_POLICY_V1.document == {
        "version": 1,
        "freshnessDays": 35,
        "attestationDays": 7,
        "leastCases": 50,
        "leastCasesPerClass": 10,
        "leastReviewedCitations": 25,
        "leastReviewers": 2,
        "leastPrecision": "9/10",
        "leastRecall": "9/10",
        "leastCitationAccuracy": "19/20",
        "leastRefusalAccuracy": "19/20",
        "mostP95LatencyMs": 10_000,
        "longestQuestion": 1000,
        "consentContract": "research-ai-evaluation-v1",
    }
    assert CURRENT_POLICY is PRODUCTION_POLICY_V1
    assert PRODUCTION_POLICY_V1.freshness_ms == 35 * 24 * 3600 * 1000
    assert PRODUCTION_POLICY_V1.attestation_ms == 7 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("metric", "least"),
    [
        ("precision", Fraction(9, 10)),
        ("recall", Fraction(9, 10)),
        ("citation_accuracy", Fraction(19, 20)),
        ("refusal_accuracy", Fraction(19, 20)),
    ],
)
def test_ratios_are_exact_fractions(metric: str, least: Fraction) -> None:
    assert PRODUCTION_POLICY_V1.least_ratio(metric) == least


@pytest.mark.parametrize("name", [entry.name for entry in fields(PRODUCTION_POLICY_V1)])
def test_every_value_is_part_of_the_digest_and_cannot_be_assigned(name: str) -> None:
    value: Any = getattr(PRODUCTION_POLICY_V1, name)
    changed = replace(PRODUCTION_POLICY_V1, **{name: value + 1 if isinstance(value, int) else f"{value}0"})
    assert changed.digest != PRODUCTION_POLICY_V1.digest
    with pytest.raises(FrozenInstanceError):
        setattr(PRODUCTION_POLICY_V1, name, value)


def test_known_policies_are_known_by_their_own_digest() -> None:
    assert all(known.digest == key for key, known in policy.KNOWN_POLICIES.items())
    assert policy.KNOWN_POLICIES[CURRENT_POLICY.digest] is CURRENT_POLICY


@pytest.mark.parametrize("kind", ["prepared", "frozen", "kit", "bundle", "verdict"])
def test_the_digest_is_written_into_every_artifact_from_the_manifest_on(kind: str) -> None:
    assert getattr(whole(), kind)["policyDigest"] == PRODUCTION_POLICY_V1.digest


@pytest.mark.parametrize("kind", ["prepared", "frozen", "kit", "bundle", "verdict"])
def test_an_artifact_under_a_policy_never_in_force_does_not_verify(kind: str) -> None:
    under_small = getattr(whole(cases=6, answerable=4, policy=SMALL_POLICY), kind)
    with pytest.raises(VerificationError, match="never in force"):
        replay.verified(deep(under_small), REBUILDS)


@pytest.mark.parametrize("kind", ["prepared", "frozen", "kit", "bundle", "verdict"])
def test_an_artifact_moved_under_another_known_policy_does_not_verify(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(policy.KNOWN_POLICIES, OTHER_POLICY.digest, OTHER_POLICY)
    moved = deep(getattr(whole(), kind)) | {"policyDigest": OTHER_POLICY.digest}
    moved["digest"] = digest_of(moved)
    if kind == "prepared":  # the first of the line: under the other policy it is an honest artifact, of another digest
        assert replay.verified(moved, REBUILDS)["digest"] != whole().prepared["digest"]
        assert World(policy=OTHER_POLICY).prepared()["digest"] == moved["digest"]
    else:
        with pytest.raises(VerificationError, match="differs"):
            replay.verified(moved, REBUILDS)


# --- under lock --------------------------------------------------------------------------------------------------


def locked() -> dict[str, str]:
    lines = (RUBRICS / "rubrics.lock").read_text(encoding="utf-8").splitlines()
    return {name: sha256 for sha256, name in (line.split("  ") for line in lines)}


def unlocked(folder: Path, lock: dict[str, str]) -> list[str]:
    """Names of rubric files that are not what the lock says, are missing, or that no lock names."""
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "rubrics.lock"
    }
    return sorted(name for name in found.keys() | lock.keys() if found.get(name) != lock.get(name))


def test_every_rubric_is_what_the_lock_says() -> None:
    assert unlocked(RUBRICS, locked()) == []


def test_the_lock_refuses_an_edit_a_loss_and_a_stranger(tmp_path: Path) -> None:
    for path in RUBRICS.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    target = tmp_path / "production-policy-v1.json"
    assert unlocked(tmp_path, locked()) == []
    target.write_bytes(target.read_bytes().replace(b'"9/10"', b'"8/10"', 1))
    (tmp_path / "stranger.json").write_text("{}")
    assert unlocked(tmp_path, locked()) == ["production-policy-v1.json", "stranger.json"]
    target.unlink()
    assert "production-policy-v1.json" in unlocked(tmp_path, locked())


def test_the_locked_policy_is_the_one_in_the_code() -> None:
    document, _ = read_document(RUBRICS / "production-policy-v1.json")
    assert digest(document) == PRODUCTION_POLICY_V1.digest
    assert document == PRODUCTION_POLICY_V1.document
