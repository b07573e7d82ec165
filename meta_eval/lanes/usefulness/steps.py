"""The steps between a study's folder and its stages, up to the runs: read, verify, judge, keep, record.

A step never trusts an upstream file: it takes the artifact that the register names, and verifies it. The clock, the
folders and the random bytes come from the front door that calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import digest, parse_document, read_document
from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.evidence.register import Entry, Events, genesis, sealed_entry
from meta_eval.lanes.usefulness import budget, freeze, opening, packets, runs, study
from meta_eval.lanes.usefulness.custody import consumed_digests, look_at, state_of
from meta_eval.lanes.usefulness.exposure import bound_studies, exposed_texts, other_registers
from meta_eval.lanes.usefulness.ledger import apply, ledger_of, opening_of
from meta_eval.lanes.usefulness.stage import Row, Setting
from meta_eval.lanes.usefulness.studies import Study

Made = tuple[Artifact, Path]


def declare(place: Study, setting: Setting, source: Path | None = None) -> Made:
    """Declare the study from its document."""
    place.make()
    path = source or place.inbox_file("study")
    document, receipt = read_document(path)
    key = place.key()
    place.retain(path)

    def build(entries: Sequence[Entry]) -> Artifact:
        return study.declare(document, state_of(entries), receipt=receipt, key=key, setting=setting)

    def events(artifact: Artifact) -> Events:
        follows = artifact["replay"]["study"]["follows"]
        body = {"digest": artifact["digest"], "environment": artifact["environment"], "follows": follows}
        return [("declared", body)]

    return place.recorded(build, events, at_ms=setting.made_at)


def seal(place: Study, setting: Setting, set_id: str, packet: Path | None = None) -> Made:
    """Seal a set's packet, and list apart what a person must clear."""
    declared = declared_study(place)
    path = packet or place.packet_file(set_id)
    facts, data = look_at(path, export_folder=place.export)
    document = parse_document(data, source=str(path)) if data else None
    listed: list[Row] = []
    # Other registers are read before this one is held: two studies that seal at once must not wait for each other.
    bound = bound_studies(place)
    others = other_registers(bound)

    def build(entries: Sequence[Entry]) -> Artifact:
        artifact, found = packets.seal(
            document,
            facts,
            declared,
            state_of(entries),
            set_id=set_id,
            registers=[entries, *others],
            consumed_texts=exposed_texts(bound),
            setting=setting,
        )
        listed.extend(found)
        return artifact

    made = place.recorded(build, lambda artifact: [("sealed", _sealed_body(artifact))], at_ms=setting.made_at)
    if listed:
        write_document(place.adjudicator / f"to-clear-{set_id}-{made[0]['digest'][:12]}.json", listed)
    return made


def _sealed_body(artifact: Artifact) -> Row:
    return {"digest": artifact["digest"], **{name: artifact["result"][name] for name in ("setId", "receipt")}}


def freeze_study(place: Study, setting: Setting, source: Path | None = None) -> Made:
    """Freeze candidate, configuration, model and budget."""
    declared = declared_study(place)
    document, receipt = read_document(source or place.inbox_file("freeze"))
    return place.recorded(
        lambda entries: freeze.freeze(document, declared, state_of(entries), receipt=receipt, setting=setting),
        lambda artifact: [("frozen", {"digest": artifact["digest"]})],
        at_ms=setting.made_at,
    )


def open_ledger(place: Study, setting: Setting, source: Path | None = None) -> None:
    """Put the budget's terms into the ledger, once. The same terms again change nothing.

    Raises:
        UsageError: other terms are there already.
    """
    document, _ = read_document(source or place.inbox_file("budget"))

    def decide(entries: Sequence[Entry]) -> Events:
        if entries:
            if entries[0]["body"] == document:
                return []
            raise UsageError("meter-reset: the ledger was opened with other terms")
        return [opening_of(document)]

    place.ledger.transact(decide, at_ms=setting.made_at)


def book(place: Study, setting: Setting, *lines: tuple[str, Row]) -> None:
    """Reserve completions, or settle or expire their reservations; all or none, on the disk before this returns.

    Raises:
        UsageError: by the name of the rule that forbids a line; the ledger stays as it was.
    """

    def decide(entries: Sequence[Entry]) -> Events:
        ledger = ledger_of(entries)
        for event, body in lines:
            apply(ledger, event, body)
        return lines

    place.ledger.transact(decide, at_ms=setting.made_at)


def preflight(place: Study, setting: Setting) -> Made:
    """Check that the plan fits the budget. The ledger is opened by it, with the very terms that were frozen."""
    declared, frozen = declared_study(place), frozen_study(place)
    terms, _ = read_document(place.inbox_file("budget"))
    if digest(terms) == frozen["replay"]["freeze"]["budgetDigest"]:
        open_ledger(place, setting)
    ledger = place.ledger.entries()
    if not ledger and isinstance(terms, dict):
        # Other terms than the frozen ones are judged, and named, without ever opening the ledger.
        event, body = opening_of(terms)
        first = genesis(place.ledger.name)
        ledger = [sealed_entry(seq=1, at_ms=setting.made_at, event=event, body=body, previous=first)]
    return place.recorded(
        lambda entries: budget.preflight(ledger, declared, frozen, state_of(entries), setting=setting),
        lambda artifact: [("preflight", {"digest": artifact["digest"]})],
        at_ms=setting.made_at,
    )


def open_packet(place: Study, setting: Setting, set_id: str, opener: str, packet: Path | None = None) -> Made:
    """Open a set's packet: the register holds that it is consumed before anybody reads it."""
    declared = declared_study(place)
    state = state_of(place.register.entries())
    known = state["sealed"].get(set_id, {}).get("digest")
    sealed_packet = place.registered(packets.KIND, known, stage=f"the sealed packet of {set_id}")
    frozen = None if state["frozen"] is None else frozen_study(place)
    path = packet or place.packet_file(set_id)
    facts, data = look_at(path, export_folder=place.export)
    document = (
        parse_document(data, source=str(path))
        if facts.receipt == sealed_packet["inputs"]["packet"]["receipt"]
        else None
    )

    elsewhere = consumed_digests(other_registers(bound_studies(place))).keys()

    def build(entries: Sequence[Entry]) -> Artifact:
        return opening.open_packet(
            document,
            facts,
            sealed_packet,
            declared,
            frozen,
            state_of(entries),
            opener=opener,
            elsewhere=elsewhere,
            setting=setting,
        )

    def events(artifact: Artifact) -> Events:
        # The bytes that were judged are retained before the register says that they are open.
        write_bytes(place.private / "kept" / f"{facts.receipt}.json", data)
        return opening.events_of(artifact)

    return place.recorded(build, events, at_ms=setting.made_at)


def record_runs(place: Study, setting: Setting, source: Path | None = None) -> Made:
    """Take the runner's record of every attempt."""
    declared, frozen = declared_study(place), frozen_study(place)
    path = source or place.inbox_file("runs")
    document, receipt = read_document(path)
    openings = {
        set_id: (artifact, [question["questionId"] for question in opened["questions"]])
        for set_id, (artifact, opened) in opened_packets(place).items()
    }
    ledger, key = place.ledger.entries(), place.key()

    def build(entries: Sequence[Entry]) -> Artifact:
        return runs.record(
            document, declared, frozen, openings, ledger, state_of(entries), receipt=receipt, key=key, setting=setting
        )

    place.retain(path)
    return place.recorded(
        build, lambda artifact: [("runs-recorded", {"digest": artifact["digest"]})], at_ms=setting.made_at
    )


def opened_packets(place: Study) -> dict[str, tuple[Artifact, Row]]:
    """The openings on record, each with the packet that it exposed."""
    state = state_of(place.register.entries())
    return {
        set_id: (
            place.registered(opening.KIND, entry["digest"], stage=f"the opening of {set_id}"),
            place.retained(entry["receipt"]),
        )
        for set_id, entry in sorted(state["opened"].items())
    }


def declared_study(place: Study) -> Artifact:
    """The declaration on record. Raises WaitingError."""
    return place.registered(study.KIND, state_of(place.register.entries())["declared"], stage="the declaration")


def frozen_study(place: Study) -> Artifact:
    """The freeze on record. Raises WaitingError."""
    return place.registered(freeze.KIND, state_of(place.register.entries())["frozen"], stage="the freeze")
