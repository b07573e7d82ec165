"""The verdict, by truth derived by hand: what 40, 41 and 42 of 60, a gain of 0 and 1, and a loss of 1 come to."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from meta_eval.evidence import statistics
from meta_eval.evidence.artifacts import digest_of
from meta_eval.lanes.usefulness import acceptance, figures, scoring
from meta_eval.lanes.usefulness.paired import gain_interval_95, mcnemar_exact
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval_tests.lanes.usefulness.world import found, whole


def rows(baseline: dict[str, int], candidate: dict[str, int], **changes: Any) -> list[dict[str, Any]]:
    """60 answers a set and arm, of which the first so many are useful."""
    plain = {"firstDefects": [], "secondDefects": [], "decided": None, "cause": None, "status": "answered"}
    return [
        {
            "setId": set_id,
            "questionId": f"q-{number:02d}",
            "arm": arm,
            "first": number < useful[set_id],
            "second": number < useful[set_id],
            **plain,
            "latencyMs": 100,
            "cost": "0.01",
            "unknownCosts": 0,
            **changes,
        }
        for arm, useful in (("baseline", baseline), ("candidate", candidate))
        for set_id in ("set-a", "set-b")
        for number in range(60)
    ]


def missed(made: list[dict[str, Any]], kind: str = "provider") -> list[str]:
    tables = {s: figures.paired_table(figures.finals(made), s, denominator=60) for s in ("set-a", "set-b")}
    combined = figures.paired_table(figures.finals(made), None, denominator=120)
    met = figures.verdict(tables, combined, CURRENT_POLICY, candidate_kind=kind)
    return sorted(name for name, fine in met.items() if not fine)


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        ((0, 0), (41, 41), []),
        ((0, 0), (40, 42), ["leastUseful:set-a"]),
        ((0, 0), (42, 40), ["leastUseful:set-b"]),
        ((0, 0), (42, 42), []),
        ((0, 0), (40, 40), ["leastUseful:set-a", "leastUseful:set-b"]),
        ((50, 50), (50, 50), ["combinedGain"]),
        ((50, 49), (50, 50), []),
        ((50, 50), (49, 55), ["noLowerSet:set-a"]),
        ((50, 50), (49, 51), ["combinedGain", "noLowerSet:set-a"]),
        ((60, 60), (60, 59), ["combinedGain", "noLowerSet:set-b"]),
        ((0, 0), (0, 0), ["combinedGain", "leastUseful:set-a", "leastUseful:set-b"]),
    ],
)
def test_verdict_by_hand(baseline: tuple[int, int], candidate: tuple[int, int], expected: list[str]) -> None:
    made = rows(
        dict(zip(("set-a", "set-b"), baseline, strict=True)), dict(zip(("set-a", "set-b"), candidate, strict=True))
    )
    assert missed(made) == expected


def test_a_deterministic_candidate_owes_no_gain() -> None:
    made = rows({"set-a": 50, "set-b": 50}, {"set-a": 41, "set-b": 41})
    assert missed(made, "deterministic") == []
    assert missed(made, "agent") == ["combinedGain", "noLowerSet:set-a", "noLowerSet:set-b"]


def test_timeouts_and_refusals_stay_in_the_denominator() -> None:
    made = rows({"set-a": 0, "set-b": 0}, {"set-a": 41, "set-b": 41})
    lost = [row for row in made if row["arm"] == "candidate" and row["setId"] == "set-a"][:1]
    lost[0].update(status="timeout", first=False, second=False)
    assert missed(made) == ["leastUseful:set-a"]
    arm = figures.arm_figures([r for r in made if r["arm"] == "candidate"], bound=Decimal("0.02"), gain=81)
    assert (arm["useful"], arm["answers"], arm["statuses"]["timeout"]) == (81, 120, 1)


@pytest.mark.parametrize(
    ("decided", "expected"), [(True, []), (False, ["leastUseful:set-a"]), (None, ["leastUseful:set-a"])]
)
def test_a_disagreement_counts_as_it_was_decided(decided: bool | None, expected: list[str]) -> None:
    made = rows({"set-a": 0, "set-b": 0}, {"set-a": 41, "set-b": 41})
    row = next(r for r in made if r["arm"] == "candidate" and r["setId"] == "set-a" and r["first"])
    for first in (True, False):
        row.update(first=first, second=not first, decided=decided)
        assert missed(made) == expected


def test_the_paired_table_by_hand() -> None:
    # Baseline useful 0..39; candidate useful 3..48: both 3..39 = 37, recoveries 40..48 = 9, losses 0..2 = 3.
    table = whole().made["accept"]["result"]["sets"]["set-a"]
    assert {name: table[name] for name in ("both", "recoveries", "losses", "neither", "gain")} == {
        "both": 37,
        "recoveries": 9,
        "losses": 3,
        "neither": 11,
        "gain": 6,
    }
    assert table["useful"] == {"baseline": 40, "candidate": 46}
    combined = whole().made["accept"]["result"]["combined"]
    assert (combined["questions"], combined["gain"], combined["recoveries"], combined["losses"]) == (120, 9, 15, 6)


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("accepted", "rehearsed", []),
        ("short-of-41", "failed", ["leastUseful:set-a"]),
        ("no-gain", "failed", ["combinedGain"]),
        ("lower-in-one-set", "failed", ["noLowerSet:set-b"]),
    ],
)
def test_endings(name: str, status: str, expected: list[str]) -> None:
    made = whole(name).made["accept"]
    assert (made["status"], made["result"]["missed"]) == (status, expected)


def test_cost_latency_and_agreement_by_hand() -> None:
    result = whole().made["accept"]["result"]
    candidate = result["arms"]["candidate"]
    # 120 questions; 6 retried after a timeout of unknown cost; 4 answers (07 and 37 a set) and 2 flawed timeouts too.
    documents = [r for r in whole().documents["runs"]["runs"] if r["arm"] == "assistant"]
    unknown = sum(row["cost"] is None for row in documents)
    known = Decimal("0.0125") * (len(documents) - unknown)
    assert candidate["cost"]["unknownCount"] == unknown
    assert Decimal(candidate["cost"]["known"]) == known
    assert Decimal(candidate["cost"]["upperBound"]) == known + unknown * Decimal("0.02")
    assert Decimal(candidate["costPerUseful"]["known"]) == round(known / 91, 9)
    assert Decimal(candidate["costPerNetGain"]["upperBound"]) == round((known + unknown * Decimal("0.02")) / 9, 9)
    assert result["arms"]["baseline"]["costPerNetGain"] is None
    assert whole("no-gain").made["accept"]["result"]["arms"]["candidate"]["costPerNetGain"] is None
    measured = candidate["latencyMs"]
    assert measured["of"] == 120
    assert measured["measured"] == 120 - sum(row["latencyMs"] is None for row in documents)
    assert (result["agreement"]["pairs"], result["agreement"]["agreed"]) == (240, 230)
    assert result["invariantExercises"] == {"held": 3, "of": 4}


def test_statistics_agree_with_independent_values() -> None:
    """Made with scipy 1.17.1 and statsmodels 0.15.0, by the call that stands beside each."""
    # scipy.stats.binomtest(6, 21).pvalue; binomtest(0, 5); binomtest(3, 6)
    assert float(mcnemar_exact(15, 6)) == pytest.approx(0.07835388183593749, abs=1e-12)
    assert mcnemar_exact(5, 0) == Fraction(1, 16)
    assert mcnemar_exact(3, 3) == 1
    assert mcnemar_exact(0, 0) == 1
    for up in range(12):
        for down in range(12):
            # A closed form that shares nothing with the code: the two-sided binomial sum over outcomes as unlikely.
            n = up + down
            weights = [math.comb(n, k) for k in range(n + 1)]
            two_sided = Fraction(sum(w for w in weights if w <= math.comb(n, up)), 2**n)
            assert mcnemar_exact(up, down) == two_sided
    # statsmodels.stats.proportion.proportion_confint(46, 60, method="wilson")
    wilson = (round(0.6456372962239805, 6), round(0.8556043826335717, 6))
    assert statistics.wilson_95(statistics.Ratio(46, 60)) == pytest.approx(wilson, abs=1e-12)


def test_kappa_by_hand() -> None:
    made = rows({"set-a": 30, "set-b": 30}, {"set-a": 30, "set-b": 30})
    for row in made[:24]:
        row["second"] = not row["second"]
    # 240 pairs, 24 apart (all useful for the first only): observed 9/10; first 120, second 96; chance 1/2.
    assert figures.agreement(made) == {"pairs": 240, "agreed": 216, "value": 0.9, "kappa": 0.8}


def test_the_interval_of_the_gain() -> None:
    assert gain_interval_95([], seed="x") is None
    assert gain_interval_95([1] * 60, seed="x") == (1.0, 1.0)
    assert gain_interval_95([0] * 60, seed="x") == (0.0, 0.0)
    low, high = gain_interval_95([1] * 15 + [-1] * 6 + [0] * 99, seed="x") or (1, -1)
    assert low < 9 / 120 < high
    # The normal interval of the same mean is 0.075 ± 1.96 * 0.0377.
    assert (low, high) == pytest.approx((0.001, 0.149), abs=0.03)
    assert gain_interval_95([1, 0, -1], seed="x") == gain_interval_95([1, 0, -1], seed="x")


# --- what acceptance refuses --------------------------------------------------------------------------------------


def forged_score() -> Any:
    """The first score with one judgment made kinder, every digest redone."""
    honest = whole().made["score 1"]
    kept = {**honest["replay"]["scores"], "scores": people.tampered(honest["replay"]["scores"]["scores"])}
    return scoring.STAGE.rebuild({**honest, "replay": {**honest["replay"], "scores": kept}})


def test_a_tampered_score_is_refused_by_name() -> None:
    forged = forged_score()
    assert forged["status"] == "ready"
    assert digest_of(forged) == forged["digest"]
    made = whole().accepted(scores=[forged, whole().made["score 2"]])
    assert found(made) == {
        ("score-differs-from-register", "scores", 1),
        ("made-from-other-artifacts", "chain", 1),
    }


def test_acceptance_waits_for_every_stage() -> None:
    w = whole()
    assert found(w.accepted(entries=w.entries("unblind"))) == {("not-yet-unblinded", "register", 1)}
    assert found(w.accepted(entries=w.entries())) == {("already-accepted", "register", 1)}


def test_acceptance_refuses_artifacts_of_another_study() -> None:
    w, other = whole(), whole("no-gain")
    assert found(w.accepted(runs=other.made["record-runs"])) == {
        ("differs-from-register", "runs-recorded", 1),
        ("made-from-other-artifacts", "chain", 1),
    }
    assert ("differs-from-register", "adjudicated", 1) in found(w.accepted(adjudicated=other.made["adjudicate"]))


def test_a_smaller_denominator_is_refused_on_replay() -> None:
    accepted = whole().made["accept"]
    replay = {**accepted["replay"], "rows": accepted["replay"]["rows"][:-2]}
    assert found(acceptance.STAGE.rebuild({**accepted, "replay": replay})) == {("denominator-reduced", "rows", 238)}
    doubled = {**accepted["replay"], "rows": [*accepted["replay"]["rows"][:-1], accepted["replay"]["rows"][0]]}
    assert ("answer-counted-twice", "rows", 1) in found(acceptance.STAGE.rebuild({**accepted, "replay": doubled}))
