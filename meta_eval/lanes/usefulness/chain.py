"""The chain of a study: what one artifact alone cannot prove, and the others on record can.

Source: the evidence contract. An artifact can be rebuilt from an edited part to its last figure, and still name the
honest artifact's digest. So whatever an artifact on record keeps of an earlier one, of the register or of the ledger
is compared with what that one holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.artifacts import Artifact, made_at_ms
from meta_eval.evidence.register import Entry
from meta_eval.evidence.replay import first_difference
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    budget,
    freeze,
    opening,
    publication,
    runs,
    scoring,
    study,
    unblinding,
)
from meta_eval.lanes.usefulness.custody import state_of
from meta_eval.lanes.usefulness.policy import policy_of
from meta_eval.lanes.usefulness.stage import Row, Setting


@dataclass(frozen=True)
class Recorded:
    """What a study has on record.

    artifacts: every verified artifact that the register names, by digest.
    entries: the verified entries of the custody register.
    ledger: the verified entries of the budget ledger.
    """

    artifacts: Mapping[str, Artifact]
    entries: Sequence[Entry]
    ledger: Sequence[Entry]

    def before(self, digest: str) -> list[Entry]:
        """The register as it stood when an artifact was recorded."""
        place = next(n for n, entry in enumerate(self.entries) if entry["body"].get("digest") == digest)
        return list(self.entries[:place])


def broken_link(artifact: Artifact, recorded: Recorded, *, study_name: str) -> tuple[str, str] | None:
    """The rule that a verified artifact on record breaks among the others, and the pointer to where; or None."""
    if artifact["round"] != study_name:
        return "belongs to another study", "/round"
    for name, entry in artifact["inputs"].items():
        if "digest" in entry and entry["digest"] not in recorded.artifacts:
            return "made from an artifact that is not on record", f"/inputs/{name}/digest"
    try:
        pointer = unlike_upstream(artifact, recorded)
    except Exception:  # a forged replay or a missing input can break a comparison in any way; none of them is success
        return "does not fit what it says it was made from", "/inputs"
    if pointer is not None:
        return "keeps something else than what is on record", pointer
    return None


def unlike_upstream(artifact: Artifact, recorded: Recorded) -> str | None:
    """The pointer to a part that an artifact keeps of the record, and that is not what the record holds; or None."""
    upstream = {
        name: recorded.artifacts[entry["digest"]] for name, entry in artifact["inputs"].items() if "digest" in entry
    }
    replay, kind = artifact["replay"], artifact["artifact"]
    if kind == publication.KIND:
        due: dict[str, Any] = {"gate": {**replay["gate"], "accepted": _named(upstream["acceptance"])}}
        if artifact["result"]["sets"] != upstream["acceptance"]["result"]["sets"]:
            return "/result/sets"
    else:
        before = recorded.before(artifact["digest"])
        due = {"register": state_of(before)} | _parts_due(artifact, upstream, before)
        if kind != study.KIND:
            due["study"] = study.extract(upstream["study"])
    if "ledger" in replay:
        due["ledger"] = list(recorded.ledger[: len(replay["ledger"])])
    for key, expected in due.items():
        if (pointer := first_difference(replay[key], expected, f"/replay/{key}")) is not None:
            return pointer
    return None


def _named(artifact: Artifact) -> Row:
    return {name: artifact[name] for name in ("digest", "status")}


def _parts_due(artifact: Artifact, upstream: Mapping[str, Artifact], before: Sequence[Entry]) -> dict[str, Any]:
    """By replay key, what an artifact of a kind keeps of those that it was made from."""
    kind = artifact["artifact"]
    if kind in (budget.KIND, runs.KIND):
        due: dict[str, Any] = {"freeze": freeze.extract_of(upstream["freeze"])}
        return due | (_openings_due(artifact, upstream) if kind == runs.KIND else {})
    if kind == opening.KIND:
        return {"freeze": _named(upstream["freeze"]), "sealed": opening.extract_of(upstream["sealedPacket"])}
    if kind == blinding.KIND:
        return {"runs": _named(upstream["recordedRuns"])}
    if kind == scoring.KIND:
        return {"blinding": scoring.blinding_extract(upstream["blindedSheets"])}
    if kind == adjudication.KIND:
        kept = [one["scorerCode"] for one in artifact["replay"]["scores"]]
        scores = [upstream[f"score:{code}"] for code in kept if f"score:{code}" in upstream]
        return {"scores": adjudication.extracts_of(scores)}
    if kind == unblinding.KIND:
        return {
            "blinding": unblinding.blinding_extract(upstream["blindedSheets"]),
            "adjudication": _named(upstream["adjudication"]),
        }
    return _verdict_due(artifact, upstream, before) if kind == acceptance.KIND else {}


def _openings_due(artifact: Artifact, upstream: Mapping[str, Artifact]) -> dict[str, Any]:
    opened = {row["setId"]: row for row in artifact["replay"]["openings"]}
    found = {name.partition(":")[2]: one for name, one in upstream.items() if name.startswith("opening:")}
    return {"openings": [{**opened.get(set_id, {}), **_named(one)} for set_id, one in sorted(found.items())]}


def _verdict_due(artifact: Artifact, upstream: Mapping[str, Artifact], before: Sequence[Entry]) -> dict[str, Any]:
    """The whole replay of a verdict: all of it follows from what is on record."""
    setting = Setting(made_at_ms(artifact), str(artifact["round"]), policy_of(artifact))
    again = acceptance.accept(
        upstream["study"],
        upstream["recordedRuns"],
        upstream["blindedSheets"],
        [upstream[name] for name in ("score1", "score2")],
        upstream["adjudication"],
        upstream["unblinding"],
        before,
        setting=setting,
    )
    due: dict[str, Any] = again["replay"]
    return due
