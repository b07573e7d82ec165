"""`meta-eval lineage` and `meta-eval explain`: where a verdict came from, and why a case counted as it did."""

from __future__ import annotations

import json
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.places import round_named
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.production import figures, metrics, stages

_ROUND = click.option("--round", "round_name", required=True, metavar="NAME", help="The round.")


@click.command("lineage")
@_ROUND
@options.as_json
def lineage(round_name: str, as_json: bool) -> None:
    """Print the chain of a round: each current artifact, verified, and what it was made from."""
    round_ = round_named(round_name)
    chain = []
    for stage in (*stages.STAGES, stages.READINESS):
        if round_.artifact_files(stage.kind):
            artifact = round_.current(stage.kind)
            kept = {key: artifact[key] for key in ("artifact", "status", "madeAt", "digest", "inputs")}
            chain.append({"stage": stage.name, **kept})
    if not chain:
        raise UsageError(f"round {round_name} has no artifact yet")
    if as_json:
        click.echo(json.dumps(chain))
        return
    for entry in chain:
        click.echo(f"{entry['stage']:<20} {entry['status']:<10} {entry['madeAt']}  {entry['digest']}")
        for name, value in sorted(entry["inputs"].items()):
            [(kind, sha256)] = value.items()
            click.echo(f"  from {name:<18} {kind:<8} {sha256}")


@click.command("explain")
@_ROUND
@click.option("--case", "case_id", required=True, metavar="ID", help="The case's pseudonym, such as case-0a1b….")
@options.as_json
def explain(round_name: str, case_id: str, as_json: bool) -> None:
    """Tell why a case counted as it did: its label, what production did, each decision, and each figure it touched."""
    round_ = round_named(round_name)
    verdict = round_.current(metrics.KIND)
    told = explained(verdict, case_id)
    if as_json:
        click.echo(json.dumps(told))
        return
    expected = "must refuse" if told["shouldRefuse"] else f"must claim {', '.join(told['expectedClaims'])}"
    click.echo(f"{case_id}  {expected}; {'refused' if told['refused'] else 'answered'}")
    for claim in told["claims"]:
        words = f"{'' if claim['expected'] else 'NOT '}expected, {'' if claim['accepted'] else 'NOT '}accepted"
        click.echo(f"  claim {claim['claimId']}: {words}")
        for citation in claim["citations"]:
            said = ", ".join(f"{code} {'' if yes else 'NOT '}supported" for code, yes in citation["decisions"])
            click.echo(f"    {citation['url']}: {said}")
    for claim_id in told["missingClaims"]:
        click.echo(f"  claim {claim_id}: expected, NOT emitted")
    click.echo("  counts")
    for name, (top, bottom) in told["counts"].items():
        click.echo(f"    {name:<17} {top} of {bottom}")
    click.echo(f"    {'p95LatencyMs':<17} {told['latencyMs']:g} ms")
    click.echo(f"    {'meanCost':<17} {told['cost']['amount']} {told['cost']['currency']}")


def explained(verdict: Artifact, case_id: str) -> dict[str, Any]:
    """What one case adds to each figure, and by which rows.

    Raises:
        UsageError: a blocked verdict has no figures, or no case of that id is in it.
    """
    if verdict["status"] == "blocked":
        raise UsageError("the verdict is blocked: no case counted; `meta-eval lineage` shows where the line stopped")
    labels = {case["caseId"]: case for case in verdict["replay"]["manifest"]["cases"]}
    case = next((case for case in verdict["replay"]["bundle"]["cases"] if case["caseId"] == case_id), None)
    if case is None:
        raise UsageError("no case of that id is in the round's verdict")
    label = labels[case_id]
    counts = figures.tally(label, case)
    emitted = {claim["claimId"] for claim in case["claims"]}
    return {
        "caseId": case_id,
        "shouldRefuse": label["shouldRefuse"],
        "expectedClaims": label["relevantClaimIds"],
        "refused": case["refused"],
        "claims": [_claim(claim, label) for claim in case["claims"]],
        "missingClaims": [claim for claim in label["relevantClaimIds"] if claim not in emitted],
        "counts": {
            "precision": (counts["acceptedHits"], counts["emitted"]),
            "recall": (counts["hits"], counts["expected"]),
            "citationAccuracy": (counts["supported"], counts["reviewed"]),
            "refusalAccuracy": (counts["refusalMatches"], 1),
        },
        "latencyMs": case["latencyMs"],
        "cost": case["cost"],
    }


def _claim(claim: dict[str, Any], label: dict[str, Any]) -> dict[str, Any]:
    return {
        "claimId": claim["claimId"],
        "expected": claim["claimId"] in label["relevantClaimIds"],
        "accepted": figures.accepted(claim),
        "citations": [
            {
                "url": citation["url"],
                "decisions": [(entry["reviewerCode"], entry["supported"]) for entry in citation["decisions"]],
            }
            for citation in claim["citations"]
        ],
    }
