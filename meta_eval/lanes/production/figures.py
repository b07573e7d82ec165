"""The figures of a verdict, each a pure step over the rows of labels and bundle.

Source: the production evaluation document, metrics section. A ratio with an empty denominator is null and misses its
threshold. Intervals and agreement are for the reader, never a gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from meta_eval.evidence import statistics
from meta_eval.evidence.statistics import Ratio
from meta_eval.lanes.production.policy import Policy

FIGURES = ("precision", "recall", "citationAccuracy", "refusalAccuracy", "p95LatencyMs", "meanCost", "agreement")
"""The figures of a verdict, in the order in which people read them."""
Row = dict[str, Any]


def figures_of(labels: Mapping[str, Row], cases: list[Row], policy: Policy, *, seed: str) -> dict[str, Row]:
    """Every figure of a verdict, by name.

    Args:
        labels: the frozen label of each case, by case id.
        cases: the bundle's cases.
        seed: what the bootstrap is seeded by; the bundle's digest.
    """
    tallies = [tally(labels[case["caseId"]], case) for case in cases]
    emitted = [entry["emitted"] for entry in tallies]
    expected = [entry["expected"] for entry in tallies]
    hits, accepted_hits = [entry["hits"] for entry in tallies], [entry["acceptedHits"] for entry in tallies]
    ratios = {
        "precision": Ratio(sum(accepted_hits), sum(emitted)),
        "recall": Ratio(sum(hits), sum(expected)),
        "citationAccuracy": Ratio(sum(t["supported"] for t in tallies), sum(t["reviewed"] for t in tallies)),
        "refusalAccuracy": Ratio(sum(t["refusalMatches"] for t in tallies), len(tallies)),
    }
    thresholds = {
        "precision": policy.least_precision,
        "recall": policy.least_recall,
        "citationAccuracy": policy.least_citation_accuracy,
        "refusalAccuracy": policy.least_refusal_accuracy,
    }
    shown = {name: _ratio_shown(ratio, thresholds[name]) for name, ratio in ratios.items()}
    shown["precision"]["bootstrap95"] = _interval(statistics.bootstrap_95(accepted_hits, emitted, seed=seed))
    shown["recall"]["bootstrap95"] = _interval(statistics.bootstrap_95(hits, expected, seed=seed))
    return {**shown, "p95LatencyMs": _latency(cases, policy), "meanCost": _cost(cases), "agreement": _agreement(cases)}


def tally(label: Row, case: Row) -> dict[str, int]:
    """What one case adds to each numerator and denominator."""
    relevant = set(label["relevantClaimIds"])
    citations = [citation for claim in case["claims"] for citation in claim["citations"]]
    return {
        "emitted": len(case["claims"]),
        "expected": len(relevant),
        "hits": sum(claim["claimId"] in relevant for claim in case["claims"]),
        "acceptedHits": sum(accepted(claim) and claim["claimId"] in relevant for claim in case["claims"]),
        "supported": sum(map(supported, citations)),
        "reviewed": len(citations),
        "refusalMatches": int(case["refused"] == label["shouldRefuse"]),
    }


def supported(citation: Row) -> bool:
    """Everybody who decided this citation says that it supports its claim."""
    return all(decision["supported"] for decision in citation["decisions"])


def accepted(claim: Row) -> bool:
    """At least one citation of the claim is supported."""
    return any(map(supported, claim["citations"]))


def _ratio_shown(ratio: Ratio, threshold: str) -> Row:
    return {
        "numerator": ratio.numerator,
        "denominator": ratio.denominator,
        "value": ratio.shown,
        "threshold": threshold,
        "met": ratio.meets(Fraction(threshold)),
        "wilson95": _interval(statistics.wilson_95(ratio)),
    }


def _interval(interval: statistics.Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def latency_us(case: Row) -> int:
    """A case's latency in whole microseconds, which the documents' reader has made sure it is."""
    microseconds: int = round(case["latencyMs"] * 1000)
    return microseconds


def _latency(cases: list[Row], policy: Policy) -> Row:
    value = statistics.nearest_rank([latency_us(case) for case in cases], percent=95)
    return {
        "value": None if value is None else value / 1000,
        "rows": len(cases),
        "rank": -(-95 * len(cases) // 100),
        "threshold": policy.most_p95_latency_ms,
        "met": value is not None and value <= policy.most_p95_latency_ms * 1000,
    }


def _cost(cases: list[Row]) -> Row:
    """The mean cost over every row, as decimal text; no threshold."""
    total = sum((Decimal(case["cost"]["amount"]) for case in cases), Decimal(0))
    return {
        "total": format(total, "f"),
        "rows": len(cases),
        "value": _decimal_text(Fraction(total) / len(cases)),
        "currency": cases[0]["cost"]["currency"],
    }


def _decimal_text(value: Fraction) -> str:
    """Nine decimal places, halves to even, trailing zeros dropped."""
    scaled = round(value * 10**9)
    text = f"{scaled // 10**9}.{scaled % 10**9:09d}".rstrip("0")
    return text.rstrip(".")


def _agreement(cases: list[Row]) -> Row:
    """Agreement of the two reviewers of overlapping cases, over the citations that both decided."""
    pairs = [
        (one["supported"], other["supported"])
        for case in cases
        for claim in case["claims"]
        for citation in claim["citations"]
        if len(citation["decisions"]) == 2
        for one, other in [citation["decisions"]]
    ]
    raw, kappa = statistics.agreement(pairs), statistics.cohens_kappa(pairs)
    return {
        "pairs": len(pairs),
        "agreed": raw.numerator,
        "value": raw.shown,
        "kappa": None if kappa is None else round(float(kappa), 6),
    }
