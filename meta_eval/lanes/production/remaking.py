"""A stage run again from the very files that its artifact names: what a replay alone cannot prove.

Source: the evidence contract. Whoever edits a replay and rebuilds the artifact from it gets an honest artifact of
inputs that nobody has. Where a round still holds the inputs that the artifact names, its stage is run again from them,
at the artifact's own recorded time and under its policy, and must give the same artifact. Nothing is kept.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from meta_eval.evidence.artifacts import Artifact, made_at_ms
from meta_eval.evidence.errors import MetaEvalError, VerificationError
from meta_eval.evidence.replay import first_difference
from meta_eval.lanes.production import question_export
from meta_eval.lanes.production.policy import policy_of
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.stages import STAGES
from meta_eval.lanes.production.steps import KEY_NAME, Progress, Setting

SCRATCH = "meta-eval-remade-"
_STAGES = {stage.kind: stage for stage in STAGES}


class _NothingKept(Round):
    """A round that is read where it is, whose question export goes elsewhere, and no record of which is believed."""

    def __init__(self, round_: Round, elsewhere: Path) -> None:
        super().__init__(round_.folder.parent, round_.name, round_.root)
        self._elsewhere = elsewhere

    @property
    def record_folder(self) -> None:
        return None

    def export_file(self, export_receipt: str) -> Path:
        """A question export that is there is read; another one is not left behind."""
        kept = super().export_file(export_receipt)
        return kept if kept.exists() else self._elsewhere / kept.name


def remade(round_: Round, artifact: Artifact, *, on_rows: Progress | None = None) -> Artifact | None:
    """The newest artifact of its stage made again from the round's own files; None where its key is withheld.

    The newest one must rest on what is newest before it. An older one could be forged with inputs that nobody can ask
    for any more, and the newest be made from that.

    Raises:
        VerificationError: it names other inputs than its stage would take now, or its stage cannot be run on them.
    """
    stage, source = _STAGES.get(artifact["artifact"]), artifact["artifact"]
    if stage is None or (stage.kind == question_export.KIND and not (round_.private / KEY_NAME).exists()):
        return None
    setting = Setting(made_at_ms(artifact), round_.name, policy_of(artifact), on_rows)
    try:
        if (pointer := first_difference(artifact["inputs"], stage.sources(round_), "/inputs")) is not None:
            raise VerificationError(source, "made from something else than what its round holds now", pointer)
        if "query_log" not in stage.inbox:
            return stage.run(round_, setting).artifact
        with tempfile.TemporaryDirectory(prefix=SCRATCH) as elsewhere:  # as private as the scan's own drafts
            return stage.run(_NothingKept(round_, Path(elsewhere)), setting).artifact
    except VerificationError:
        raise
    except (MetaEvalError, OSError):
        raise VerificationError(source, "its stage cannot be run again on what it names", "/inputs") from None
