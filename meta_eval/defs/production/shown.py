"""What a person sees on an asset's page: verdict, figures, blockers, digests and the next step.

The orchestration contract. Counts, digests, codes and rules only: no question, id, path of a machine or free text.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import guidance
from meta_eval.lanes.production.figures import FIGURES
from meta_eval.lanes.production.rounds import INBOX, Kept, Round
from meta_eval.lanes.production.stages import READINESS, STAGES, Stage

Metadata = Mapping[str, Any]
_BAR = 40


def metadata_of(stage: Stage, kept: Kept, round_: Round, home: MetaEvalHome) -> Metadata:
    """The metadata of one materialization."""
    artifact = kept.artifact
    shown: dict[str, Any] = {
        "status": artifact["status"],
        "next step": _wrapped(next_step(stage, artifact, round_)),
        **_verdict(artifact["result"].get("metrics") or {}),
        **_requirements(artifact["result"].get("requirements") or []),
        "blockers": blockers_table(artifact),
        "round": round_.name,
        "environment": artifact["environment"] or "not attested yet",
        "evidence class": artifact["evidenceClass"],
        "made at": artifact["madeAt"],
        "digest": artifact["digest"],
        "policy digest": artifact["policyDigest"],
        "made from": _inputs_table(artifact),
        "file": home.relative(kept.path),
        "worksheets": [home.relative(paper) for paper in kept.papers],
        "reused": kept.reused,
        "blocker count": len(artifact["blockers"]),
    }
    counts = {name: value for name, value in artifact["result"].items() if type(value) is int}
    counts |= {f"rows {name}": value for name, value in artifact["result"].get("outcomes", {}).items()}
    if "rowCount" in counts:
        shown["dagster/row_count"] = counts["rowCount"]
    return shown | counts


def _wrapped(text: str) -> dg.MarkdownMetadataValue:
    """A sentence that the page shows whole: it wraps no metadata, and cuts what is too wide."""
    return dg.MetadataValue.md("  \n".join(textwrap.wrap(text, 68)))


def blockers_table(artifact: Artifact) -> dg.TableMetadataValue:
    columns = [dg.TableColumn("code"), dg.TableColumn("subject"), dg.TableColumn("count", "int")]
    return dg.MetadataValue.table([dg.TableRecord(row) for row in artifact["blockers"]], dg.TableSchema(columns))


def blockers_in_words(artifact: Artifact) -> str:
    """Each blocker by code, place and count, for the log of a run; empty where there are none."""
    words = [f"{entry['code']} ({entry['subject']}, {entry['count']})" for entry in artifact["blockers"]]
    return f"blocked by {'; '.join(words)}" if words else ""


def next_step(stage: Stage, artifact: Artifact, round_: Round) -> str:
    """What the operator does next: where all is well, which file the next stage waits for."""
    if artifact["status"] != "ready" or stage is READINESS:
        return guidance.next_step(artifact)
    following = STAGES[[other.name for other in STAGES].index(stage.name) + 1]
    missing = [name for name in following.inbox if not any((round_.inbox / file).exists() for file in INBOX[name])]
    if missing:
        return "waiting for: " + ", ".join(f"{name.replace('_', ' ')} in inbox/{INBOX[name][0]}" for name in missing)
    return f"run {following.name}"


def _inputs_table(artifact: Artifact) -> dg.TableMetadataValue:
    rows = [
        dg.TableRecord({"input": name, "kind": kind, "sha256": value})
        for name, entry in artifact["inputs"].items()
        for kind, value in entry.items()
    ]
    return dg.MetadataValue.table(rows, dg.TableSchema([dg.TableColumn(name) for name in ("input", "kind", "sha256")]))


def _verdict(figures: Mapping[str, Mapping[str, Any]]) -> Metadata:
    """The verdict as a table and as a chart, and each figure as a number whose history Dagster plots."""
    if not figures:
        return {}
    names = ("metric", "from", "value", "threshold", "met", "interval")
    table = dg.MetadataValue.table(
        [dg.TableRecord(_verdict_row(name, figures[name])) for name in FIGURES],
        dg.TableSchema([dg.TableColumn(name) for name in names]),
    )
    numbers = {name: float(figure["value"]) for name, figure in figures.items() if figure["value"] is not None}
    return {"verdict": table, "chart": dg.MetadataValue.md(chart(figures)), **numbers}


def _requirements(found: Sequence[Mapping[str, Any]]) -> Metadata:
    """Each requirement of a release with its state, and what to do where it is missed."""
    if not found:
        return {}
    rows = []
    for entry in found:
        told, remedy = guidance.REQUIREMENTS[entry["requirement"]]
        do = remedy if entry["state"] == "missed" else ""
        rows.append(dg.TableRecord({"requirement": told, "state": entry["state"], "what to do": do}))
    columns = [dg.TableColumn(name) for name in ("requirement", "state", "what to do")]
    return {"requirements": dg.MetadataValue.table(rows, dg.TableSchema(columns))}


def _verdict_row(name: str, figure: Mapping[str, Any]) -> dict[str, Any]:
    low_high = figure.get("wilson95")
    top = figure.get("numerator", figure.get("agreed", figure.get("total")))
    bottom = figure.get("denominator", figure.get("pairs", figure.get("rows")))
    cells = {
        "metric": name,
        "from": f"{bottom} rows" if top is None else f"{top}/{bottom}",
        "value": figure["value"],
        "threshold": _threshold(name, figure),
        "met": {True: "yes", False: "no", None: ""}[figure.get("met")],
        "interval": f"{low_high[0]:.3f}–{low_high[1]:.3f}" if low_high else "",
    }
    return {key: "" if value is None else str(value) for key, value in cells.items()}


def _threshold(name: str, figure: Mapping[str, Any]) -> str:
    if "threshold" not in figure:
        return ""
    return f"at most {figure['threshold']}" if name == "p95LatencyMs" else f"at least {figure['threshold']}"


def chart(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """A bar a metric with a threshold, `|` at the threshold: plain text, for it must show without a script."""
    lines = []
    for name in FIGURES:
        figure = figures[name]
        if "threshold" not in figure:
            continue
        full = 2.0 * figure["threshold"] if name == "p95LatencyMs" else 1.0
        mark = figure["threshold"] / full if name == "p95LatencyMs" else _as_number(figure["threshold"])
        filled = 0 if figure["value"] is None else round(min(figure["value"] / full, 1.0) * _BAR)
        bar = list("█" * filled + "·" * (_BAR - filled))
        bar.insert(round(mark * _BAR), "|")
        value = "no value" if figure["value"] is None else f"{figure['value']:g}"
        lines.append(f"{name:<16} {''.join(bar)} {value:<9} {'met' if figure['met'] else 'MISSED'}")
    return "```\n" + "\n".join(lines) + "\n```"


def _as_number(fraction: str) -> float:
    top, _, bottom = fraction.partition("/")
    return int(top) / int(bottom)
