"""The steps from the recorded runs to the public export: blind, score, adjudicate, unblind, accept, publish.

As in `steps`: what counts is what the register names, and it is verified before it is used. Sheets go to the one
folder of whoever may read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import digest, read_document
from meta_eval.evidence.files import write_document
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    form,
    publication,
    runs,
    scoring,
    shapes,
    sheets,
    unblinding,
)
from meta_eval.lanes.usefulness.custody import state_of
from meta_eval.lanes.usefulness.hiding import read_hidden
from meta_eval.lanes.usefulness.sheets import registered, scores_of
from meta_eval.lanes.usefulness.stage import Row, Setting
from meta_eval.lanes.usefulness.steps import Made, declared_study, opened_packets
from meta_eval.lanes.usefulness.studies import Study
from meta_eval.lanes.usefulness.study import scorer_codes


def blind(place: Study, setting: Setting, *, secret: bytes, nonce: str) -> Made:
    """Publish the commitment to the key, and give every scorer a sheet.

    Args:
        secret: at least 32 random bytes that decide the labels.
        nonce: 64 random hexadecimal digits.
    """
    declared = declared_study(place)
    recorded = registered(place, runs, "runs-recorded", "the recorded runs")
    said = place.retained(declared["inputs"]["study"]["receipt"])
    questions = {
        set_id: [entry["questionId"] for entry in packet["questions"]]
        for set_id, (_, packet) in opened_packets(place).items()
    }
    key = blinding.drawn_key(secret, questions, [arm["armId"] for arm in said["arms"]])
    handed = sheets.scorer_sheets(place, key)
    terms = [term for arm in said["arms"] for term in arm["identityTerms"]]

    def build(entries: Sequence[Entry]) -> Artifact:
        published = blinding.commitment(key, nonce)
        return blinding.blind(
            declared, recorded, handed, state_of(entries), published=published, terms=terms, setting=setting
        )

    def events(artifact: Artifact) -> list[tuple[str, Row]]:
        # The key is on the disk before the register says that it was drawn.
        write_document(sheets.key_file(place, artifact), {"key": key, "nonce": nonce})
        return [("blinded", {"digest": artifact["digest"], "commitment": artifact["result"]["commitment"]})]

    made = place.recorded(build, events, at_ms=setting.made_at)
    sheets.hand_out(place)
    return made


def score(place: Study, setting: Setting, source: Path) -> Made:
    """Take one scorer's filled sheet; once both are in, give the adjudicator theirs."""
    declared, key = declared_study(place), place.key()
    blinded = registered(place, blinding, "blinded", "the blinded sheets")
    document, receipt = read_document(source)

    def build(entries: Sequence[Entry]) -> Artifact:
        return scoring.score(document, declared, blinded, state_of(entries), receipt=receipt, key=key, setting=setting)

    place.retain(source)
    made = place.recorded(
        build,
        lambda artifact: [("scored", {"digest": artifact["digest"], "scorerCode": artifact["result"]["scorerCode"]})],
        at_ms=setting.made_at,
    )
    if len(state_of(place.register.entries())["scored"]) == len(scorer_codes(declared["replay"]["study"])):
        content = sheets.adjudication_sheet(place)
        sheets.put_sheet(place.adjudicator, content, form.adjudication_form(content))
    return made


def adjudicate(place: Study, setting: Setting, source: Path | None = None) -> Made:
    """Take the adjudicator's decisions."""
    declared, scores, key = declared_study(place), scores_of(place), place.key()
    path = source or place.inbox_file("adjudication")
    document, receipt = read_document(path)
    given = digest(sheets.adjudication_sheet(place))

    def build(entries: Sequence[Entry]) -> Artifact:
        return adjudication.adjudicate(
            document,
            declared,
            scores,
            state_of(entries),
            sheet_digest=given,
            receipt=receipt,
            key=key,
            setting=setting,
        )

    place.retain(path)
    return place.recorded(
        build, lambda artifact: [("adjudicated", {"digest": artifact["digest"]})], at_ms=setting.made_at
    )


def unblind(place: Study, setting: Setting, key_file: Path | None = None) -> Made:
    """Open the commitment, once adjudication is closed."""
    declared = declared_study(place)
    blinded = registered(place, blinding, "blinded", "the blinded sheets")
    adjudicated = registered(place, adjudication, "adjudicated", "the adjudication")
    key, _ = read_document(key_file or sheets.key_file(place, blinded))
    return place.recorded(
        lambda entries: unblinding.unblind(key, declared, blinded, adjudicated, state_of(entries), setting=setting),
        lambda artifact: [("unblinded", {"digest": artifact["digest"]})],
        at_ms=setting.made_at,
    )


def accept(place: Study, setting: Setting) -> Made:
    """Recompute the verdict from every row."""
    declared, scores = declared_study(place), scores_of(place)
    recorded = registered(place, runs, "runs-recorded", "the recorded runs")
    blinded = registered(place, blinding, "blinded", "the blinded sheets")
    adjudicated = registered(place, adjudication, "adjudicated", "the adjudication")
    unblinded = registered(place, unblinding, "unblinded", "the unblinding")

    def build(entries: Sequence[Entry]) -> Artifact:
        return acceptance.accept(declared, recorded, blinded, scores, adjudicated, unblinded, entries, setting=setting)

    return place.recorded(
        build,
        lambda artifact: [("accepted", {"digest": artifact["digest"], "status": artifact["status"]})],
        at_ms=setting.made_at,
    )


def publish(place: Study, setting: Setting) -> Made:
    """Write the public export into the export folder."""
    declared, scores = declared_study(place), scores_of(place)
    accepted = registered(place, acceptance, "accepted", "the acceptance")
    unblinded = registered(place, unblinding, "unblinded", "the unblinding")
    recorded = registered(place, runs, "runs-recorded", "the recorded runs")
    adjudicated = registered(place, adjudication, "adjudicated", "the adjudication")
    values, unfaithful = _judged_documents(place, declared, recorded, adjudicated, scores)
    opened = {set_id: packet for set_id, (_, packet) in opened_packets(place).items()}

    def build(entries: Sequence[Entry]) -> Artifact:
        return publication.publish(
            declared,
            accepted,
            unblinded,
            state_of(entries),
            packets=opened,
            recorded=values["runs"],
            scores={name.partition(":")[2]: value for name, value in values.items() if name.startswith("scores:")},
            adjudicated=values["adjudication"],
            unfaithful=unfaithful,
            setting=setting,
        )

    made = place.recorded(
        build, lambda artifact: [("published", {"digest": artifact["digest"]})], at_ms=setting.made_at
    )
    if made[0]["status"] == "ready":
        put_export(place, made[0])
    return made


def _judged_documents(
    place: Study, declared: Artifact, recorded: Artifact, adjudicated: Artifact, scores: Sequence[Artifact]
) -> tuple[dict[str, Any], list[str]]:
    """The documents that were retained, by name, and the names of those that are not what the artifacts came from."""
    key = place.key()
    environment = declared["environment"] or "production"
    documents = {
        "runs": (recorded, "runs", shapes.runs(environment)),
        "adjudication": (adjudicated, "adjudication", shapes.ADJUDICATION),
        **{f"scores:{scored['result']['scorerCode']}": (scored, "scores", shapes.SCORES) for scored in scores},
    }
    values: dict[str, Any] = {}
    unfaithful: list[str] = []
    for name, (artifact, part, shape) in documents.items():
        values[name] = place.retained(artifact["inputs"][part]["receipt"])
        _, kept = read_hidden(values[name], shape, key, subject=part)
        if kept != artifact["replay"][part]:
            unfaithful.append(part)
    return values, unfaithful


def put_export(place: Study, export: Artifact) -> Path:
    """Put a ready export into the export folder; again, where something stopped it."""
    return write_document(place.export / f"usefulness-export-{export['digest'][:12]}.json", export)
