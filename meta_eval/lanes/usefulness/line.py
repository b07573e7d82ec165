"""The stages of a study in order, as a line that may be asked again: what is on record is taken, the rest is made.

Source: the orchestration contract. An orchestrator advances what people have put into the study's folder. It never
opens a packet: that is the designated runner's own act at the terminal, and the line waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from meta_eval.evidence.errors import UsageError, WaitingError
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    budget,
    closing,
    freeze,
    opening,
    packets,
    publication,
    runs,
    scoring,
    sheets,
    steps,
    study,
    unblinding,
)
from meta_eval.lanes.usefulness.custody import state_of
from meta_eval.lanes.usefulness.stage import Row, Setting
from meta_eval.lanes.usefulness.steps import Made
from meta_eval.lanes.usefulness.studies import Study

Randomness = Callable[[int], bytes]


@dataclass(frozen=True)
class LineStage:
    """One stage: its name, its artifact, what people bring to it, what it follows, and how it is made."""

    name: str
    kind: str
    inbox: tuple[str, ...]
    upstream: tuple[str, ...]
    run: Callable[[Study, Setting, Randomness], Sequence[Made]]


def advance(place: Study, stage: LineStage, setting: Setting, randomness: Randomness) -> Sequence[Made]:
    """The artifacts of a stage, taken from the record or made now.

    Raises:
        WaitingError: something that it needs is not there yet.
    """
    return stage.run(place, setting, randomness)


def stage_named(name: str) -> LineStage:
    """The stage of this name. Raises UsageError."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise UsageError(f"no stage of that name; the stages are {', '.join(stage.name for stage in STAGES)}")


def _state(place: Study) -> Row:
    return state_of(place.register.entries())


def _on_record(place: Study, kind: str, digest: str, stage: str) -> Made:
    artifact = place.registered(kind, digest, stage=stage)
    path = next(path for path in (place.artifacts / kind).glob(f"*-{digest[:12]}.json"))
    return artifact, path


def _once(kind: str, event: str, make: Callable[[Study, Setting], Made]) -> Callable[..., Sequence[Made]]:
    """A stage that is on record once, or made now."""

    def run(place: Study, setting: Setting, _: Randomness) -> Sequence[Made]:
        known = _state(place)[event]
        return [_on_record(place, kind, known, event) if known else make(place, setting)]

    return run


def _seal(place: Study, setting: Setting, _: Randomness) -> Sequence[Made]:
    made: list[Made] = []
    for set_id in study.set_ids(study.extract(steps.declared_study(place))):
        known = _state(place)["sealed"].get(set_id)
        if known is None and not place.packet_file(set_id).is_symlink() and not place.packet_file(set_id).exists():
            raise WaitingError(f"waiting for: the packet of {set_id} in packets/{set_id}.json, mode 0600")
        made.append(
            steps.seal(place, setting, set_id)
            if known is None
            else _on_record(place, packets.KIND, known["digest"], "sealed")
        )
    return made


def _opened(place: Study, _: Setting, __: Randomness) -> Sequence[Made]:
    opened = _state(place)["opened"]
    made: list[Made] = []
    for set_id in study.set_ids(study.extract(steps.declared_study(place))):
        if set_id not in opened:
            raise WaitingError(f"waiting for: the designated runner to open {set_id} at the terminal")
        made.append(_on_record(place, opening.KIND, opened[set_id]["digest"], "opened"))
    return made


def _blind(place: Study, setting: Setting, randomness: Randomness) -> Sequence[Made]:
    known = _state(place)["blinded"]
    if known:
        sheets.hand_out(place)
        return [_on_record(place, blinding.KIND, known, "blinded")]
    return [closing.blind(place, setting, secret=randomness(32), nonce=randomness(32).hex())]


def _score(place: Study, setting: Setting, _: Randomness) -> Sequence[Made]:
    made: list[Made] = []
    for code in study.scorer_codes(study.extract(steps.declared_study(place))):
        known = _state(place)["scored"].get(code)
        path: Path = place.scorers / code / "scores.json"
        if known is None and not path.exists():
            raise WaitingError("waiting for: scores.json in the folder of each scorer")
        made.append(
            closing.score(place, setting, path) if known is None else _on_record(place, scoring.KIND, known, "scored")
        )
    return made


def _publish(place: Study, setting: Setting, _: Randomness) -> Sequence[Made]:
    published = [entry for entry in place.register.entries() if entry["event"] == "published"]
    if published:
        export = _on_record(place, publication.KIND, published[-1]["body"]["digest"], "published")
        closing.put_export(place, export[0])
        return [export]
    return [closing.publish(place, setting)]


STAGES: Sequence[LineStage] = (
    LineStage("declared_study", study.KIND, ("study",), (), _once(study.KIND, "declared", steps.declare)),
    LineStage("sealed_packets", packets.KIND, ("packets",), ("declared_study",), _seal),
    LineStage(
        "study_freeze",
        freeze.KIND,
        ("freeze",),
        ("sealed_packets",),
        _once(freeze.KIND, "frozen", steps.freeze_study),
    ),
    LineStage(
        "budget_preflight",
        budget.KIND,
        ("budget",),
        ("study_freeze",),
        _once(budget.KIND, "preflight", steps.preflight),
    ),
    LineStage("opened_packets", opening.KIND, (), ("budget_preflight",), _opened),
    LineStage(
        "recorded_runs",
        runs.KIND,
        ("runs",),
        ("opened_packets",),
        _once(runs.KIND, "runs-recorded", steps.record_runs),
    ),
    LineStage("blinded_sheets", blinding.KIND, (), ("recorded_runs",), _blind),
    LineStage("blind_scores", scoring.KIND, ("scores",), ("blinded_sheets",), _score),
    LineStage(
        "adjudication",
        adjudication.KIND,
        ("adjudication",),
        ("blind_scores",),
        _once(adjudication.KIND, "adjudicated", closing.adjudicate),
    ),
    LineStage(
        "unblinding", unblinding.KIND, (), ("adjudication",), _once(unblinding.KIND, "unblinded", closing.unblind)
    ),
    LineStage("acceptance", acceptance.KIND, (), ("unblinding",), _once(acceptance.KIND, "accepted", closing.accept)),
    LineStage("public_export", publication.KIND, (), ("acceptance",), _publish),
)
