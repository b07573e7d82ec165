"""What somebody does next, told by the artifact at hand: one sentence a stage and status."""

from __future__ import annotations

from collections.abc import Mapping

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    budget,
    freeze,
    opening,
    packets,
    publication,
    runs,
    scoring,
    study,
    unblinding,
)

_WHEN_READY: Mapping[str, str] = {
    study.KIND: "each author puts a packet into packets/SET.json with mode 0600, and has it sealed",
    packets.KIND: "seal the other set, then freeze; until then nobody but its author reads the packet",
    freeze.KIND: "put budget.json into the inbox and run the preflight",
    budget.KIND: "the designated runner opens the packets",
    opening.KIND: "the runner reserves each completion, runs both arms, and puts runs.json into the inbox",
    runs.KIND: "blind the answers",
    blinding.KIND: "publish the commitment; each scorer fills in the sheet of their own folder",
    scoring.KIND: "wait for the other score; then the adjudicator decides what the scorers disagree on",
    adjudication.KIND: "unblind",
    unblinding.KIND: "recompute the verdict: accept",
    publication.KIND: "hand out the export; anybody can recount it with `meta-eval usefulness replay`",
}
_WHEN_BLOCKED: Mapping[str, str] = {
    study.KIND: "mend the declaration by the blockers; then declare again",
    packets.KIND: "return the packet to its author with the blockers; then seal again",
    freeze.KIND: "mend the freeze by the blockers; then freeze again",
    budget.KIND: "nothing runs: plan fewer completions or grant a larger budget in another study",
    opening.KIND: "nothing was opened: mend the custody of the packet",
    runs.KIND: "complete the record of what happened; no row may be left out",
    blinding.KIND: "mend what gives an arm away; then blind again",
    scoring.KIND: "return the sheet to its scorer with the blockers; then score again",
    adjudication.KIND: "return the decisions to the adjudicator with the blockers; then adjudicate again",
    unblinding.KIND: "close adjudication first, or bring the key that was committed to",
    acceptance.KIND: "find out what differs from the register before anything else",
    publication.KIND: "take out what must not be published, or ask the author for permission",
}
_VERDICTS: Mapping[str, str] = {
    "passed": "publish the export; it says useful on these sets, and no more",
    "rehearsed": "publish the export, to see what one looks like; a rehearsal proves nothing about a feature",
    "failed": "record diagnosis, bounded experiment and falsification challenge before another sealed attempt",
}


def next_step(artifact: Artifact) -> str:
    """The next step after this artifact of the usefulness lane."""
    status, kind = artifact["status"], artifact["artifact"]
    if status in _VERDICTS:
        return _VERDICTS[status]
    return (_WHEN_BLOCKED if status == "blocked" else _WHEN_READY)[kind]
