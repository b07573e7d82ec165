"""The sheets on disk: each in the one folder of whoever may read it, made again from what is on record.

Source: the usefulness contract, blinding and adjudication. A sheet follows from the recorded runs and the key on
record, so one that was lost is written anew with the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.errors import UsageError, WaitingError
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.evidence.identifiers import is_code
from meta_eval.lanes.usefulness import adjudication, blinding, form, runs, scoring
from meta_eval.lanes.usefulness.custody import state_of
from meta_eval.lanes.usefulness.stage import Row
from meta_eval.lanes.usefulness.steps import declared_study, opened_packets
from meta_eval.lanes.usefulness.studies import Study
from meta_eval.lanes.usefulness.study import scorer_codes

_KEY_NAME = "blinding-key.json"


def hand_out(place: Study) -> None:
    """Put each scorer's sheet into the scorer's folder, by the key on record; again, where something stopped it."""
    state = state_of(place.register.entries())
    if state["blinded"] is None:
        return
    blinded = registered(place, blinding, "blinded", "the blinded sheets")
    key, _ = read_document(key_file(place, blinded))
    for code, content in scorer_sheets(place, key["key"]).items():
        put_sheet(place.scorers / code, content, form.scoring_form(content))


def scorer_sheets(place: Study, key: blinding.Key) -> dict[str, Row]:
    """Each scorer's sheet under a key."""
    declared = declared_study(place)
    recorded = registered(place, runs, "runs-recorded", "the recorded runs")
    document = place.retained(recorded["inputs"]["runs"]["receipt"])
    opened = {set_id: packet for set_id, (_, packet) in opened_packets(place).items()}
    summary = place.retained(declared["inputs"]["study"]["receipt"])["activation"]["summary"]
    return {
        code: blinding.sheet(code, place.name, summary, opened, document["runs"], key)
        for code in scorer_codes(declared["replay"]["study"])
    }


def key_file(place: Study, blinded: Artifact) -> Path:
    return place.private / f"{blinded['digest'][:12]}-{_KEY_NAME}"


def put_sheet(folder: Path, content: Row, page: bytes) -> None:
    write_document(folder / "sheet.json", content)
    write_bytes(folder / "sheet.html", page)


def adjudication_sheet(place: Study) -> Row:
    """What the adjudicator decides on, from the documents that both scorers handed in. Raises WaitingError."""
    first, second = (place.retained(scored["inputs"]["scores"]["receipt"])["scores"] for scored in scores_of(place))
    declared = declared_study(place)["replay"]["study"]
    content, _ = read_document(_sheet_file(place, scorer_codes(declared)[0]))
    return adjudication.sheet(content, first, second, adjudicator=declared["roles"]["adjudicator"]["code"])


def _sheet_file(place: Study, code: str) -> Path:
    if not is_code(code):
        raise UsageError("no scorer's code")
    return place.scorers / code / "sheet.json"


def scores_of(place: Study) -> list[Artifact]:
    """Each scorer's score: the one on record, or else the newest there is, for the stage to refuse by name."""
    recorded = state_of(place.register.entries())["scored"]
    found: dict[str, Artifact] = {}
    for artifact in place.every(scoring.KIND):
        code = artifact["result"]["scorerCode"]
        if artifact["status"] == "ready" and found.get(code, {}).get("digest") != recorded.get(code):
            found[code] = artifact
    codes = scorer_codes(declared_study(place)["replay"]["study"])
    if not recorded.keys() >= set(codes) or not found.keys() >= set(codes):
        raise WaitingError(f"waiting for: both scores of study {place.name}")
    return [found[code] for code in codes]


def registered(place: Study, module: Any, event: str, stage: str) -> Artifact:
    return place.registered(module.KIND, state_of(place.register.entries())[event], stage=stage)
