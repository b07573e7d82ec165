"""A whole study, played: people put their documents where they belong, and every step runs for real.

The calendar is dated back from the verdict, an hour a step, so that every chronology gate is met in earnest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import canonical_bytes, read_document
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.lanes.usefulness import closing, scoring, steps
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.rehearsal.invented import Objects
from meta_eval.lanes.usefulness.rehearsal.scenarios import SETS, Scenario
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study

HOUR = 3_600_000
_STEPS = 15


@dataclass(frozen=True)
class Script:
    """What a rehearsal plays: the ending, the objects that it asks about, the verdict's instant, the random bytes.

    `secret` and `nonce` come from the operating system even here: a blinding whose secret follows from a seed could
    be undone by trying seeds.
    """

    scenario: Scenario
    objects: Objects
    verdict_at: int
    secret: bytes
    nonce: str

    def setting(self, place: Study, step: int) -> Setting:
        return Setting(self.verdict_at - (_STEPS - step) * HOUR, place.name)


def play(place: Study, script: Script, *, again: Study | None = None) -> Iterator[tuple[str, Artifact]]:
    """Play a study and give each step's name and artifact as it comes; the first blocked one is the last.

    Args:
        again: where a second attempt with the consumed packets is played, for the ending that shows its refusal.
    """
    for name, artifact in _steps(place, script):
        yield name, artifact
        if artifact["status"] == "blocked":
            return
    if script.scenario.breaks == "reused-packet" and again is not None:
        yield from _reused(place, again, script)


def _steps(place: Study, script: Script) -> Iterator[tuple[str, Artifact]]:
    at = script.verdict_at
    place.make()
    write_document(place.inbox / "study.json", people.study())
    yield "declare", steps.declare(place, script.setting(place, 1))[0]
    for set_id in SETS:
        write_document(place.packet_file(set_id), people.packet(set_id, script.objects, at - _STEPS * HOUR))
        yield f"seal {set_id}", steps.seal(place, script.setting(place, 2), set_id)[0]
    terms = people.budget(enough=script.scenario.breaks != "over-budget")
    write_document(place.inbox / "budget.json", terms)
    write_document(place.inbox / "freeze.json", people.freeze(terms))
    frozen = steps.freeze_study(place, script.setting(place, 3))[0]
    yield "freeze", frozen
    yield "preflight", steps.preflight(place, script.setting(place, 4))[0]
    for set_id in SETS:
        yield f"open {set_id}", steps.open_packet(place, script.setting(place, 5), set_id, people.RUNNER)[0]
    document, booked = people.runs(script.scenario, script.objects, frozen["digest"])
    steps.book(place, script.setting(place, 6), *booked)
    write_document(place.inbox / "runs.json", document)
    yield "record-runs", steps.record_runs(place, script.setting(place, 7))[0]
    yield from _judgments(place, script)


def _judgments(place: Study, script: Script) -> Iterator[tuple[str, Artifact]]:
    yield "blind", closing.blind(place, script.setting(place, 8), secret=script.secret, nonce=script.nonce)[0]
    for number, code in enumerate(people.SCORERS):
        sheet, _ = read_document(place.scorers / code / "sheet.json")
        filled = write_document(place.scorers / code / "scores.json", people.scores(sheet, strict=number == 1))
        yield f"score {number + 1} of 2", closing.score(place, script.setting(place, 9 + number), filled)[0]
    sheet, _ = read_document(place.adjudicator / "sheet.json")
    write_document(place.inbox / "adjudication.json", people.adjudication(sheet))
    yield "adjudicate", closing.adjudicate(place, script.setting(place, 12))[0]
    yield "unblind", closing.unblind(place, script.setting(place, 13))[0]
    if script.scenario.breaks == "tampered-score":
        tamper(place)
    yield "accept", closing.accept(place, script.setting(place, _STEPS))[0]
    yield "publish", closing.publish(place, script.setting(place, _STEPS))[0]


def tamper(place: Study) -> Path:
    """Make the first scorer's judgment kinder, every digest redone, and put it in the place of the honest one."""
    path = min((place.artifacts / scoring.KIND).glob("*.json"))
    honest, _ = read_document(path)
    scores = {**honest["replay"]["scores"], "scores": people.tampered(honest["replay"]["scores"]["scores"])}
    forged = scoring.STAGE.rebuild({**honest, "replay": {**honest["replay"], "scores": scores}})
    path.unlink()
    return write_document(path, forged)


def _reused(place: Study, again: Study, script: Script) -> Iterator[tuple[str, Artifact]]:
    """A second study that brings the first one's questions, under other names and some in other words."""
    again.make()
    setting = Setting(script.verdict_at, again.name)
    write_document(again.inbox / "study.json", people.study(follows=[place.name]))
    yield "declare again", steps.declare(again, setting)[0]
    packet: dict[str, Any] = json.loads(place.packet_file(SETS[0]).read_bytes())
    for number, question in enumerate(packet["questions"]):
        question["questionId"] = f"fresh-{number:02d}"
        if number % 2:
            question["question"] = f"Please: {question['question'].lower()}"
    write_bytes(again.packet_file(SETS[0]), canonical_bytes(packet))
    yield "seal again", steps.seal(again, setting, SETS[0])[0]
