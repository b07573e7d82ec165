"""The course of a rehearsal: who puts what into the inbox between which stages.

The stages themselves are run by whoever calls (`RunStages`), so that the same play goes through Dagster or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.production import labels, manifest, question_export, run_kit
from meta_eval.lanes.production.rehearsal import invented_log, people
from meta_eval.lanes.production.rehearsal.faults import MISSES, broken
from meta_eval.lanes.production.rehearsal.people import SLIPS, Timeline
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import KEY_NAME, REBUILDS

RunStages = Callable[[Sequence[str], int], bool]
"""Run the named stages at a clock in milliseconds; False as soon as one of them did not come out ready."""


@dataclass(frozen=True)
class Script:
    """What a rehearsal is made of."""

    verdict_at: int
    seed: int = 1
    queries: Sequence[str] = ()
    intents: Mapping[str, str] = field(default_factory=dict)
    miss: str | None = None
    break_rule: str | None = None
    rows: int = invented_log.ROWS
    """Rows of the invented log; with questions from a file, their number is the file's."""

    @property
    def times(self) -> Timeline:
        return Timeline(self.verdict_at)

    @property
    def slips(self) -> Mapping[str, int]:
        return SLIPS if self.miss is None else MISSES[self.miss]


def play(round_: Round, script: Script, run: RunStages) -> bool:
    """Play a rehearsal in a round's folder; whether every stage came out ready, the verdict included."""
    round_.make()
    times = script.times
    write_bytes(round_.private / KEY_NAME, people.pseudonym_key(script.seed))
    _put_log(round_, script)
    if not run(["log_attestation"], times.log_read):
        return False
    template, _ = read_document(_paper(round_, "attestation-template"))
    _put(round_, "attestation", people.attestation(template, times), script)
    if not run(["question_export", "prepared_manifest"], times.after_log(1)):
        return False
    _put(round_, "labels", _labelled(round_, script), script)
    if not run(["frozen_labels"], times.after_log(5)):
        return False
    _put(round_, "run_operator", people.run_operator(), script)
    if not run(["run_kit"], times.after_log(6)):
        return False
    _put_results(round_, script)
    return run(["assembled_bundle", "production_metrics"], script.verdict_at)


def _put_log(round_: Round, script: Script) -> None:
    now, seed = script.times.log_read, script.seed
    if script.queries:
        rows = invented_log.rows_of_queries(list(script.queries), seed=seed, now=now)
    else:
        rows = invented_log.invented_rows(seed=seed, now=now, rows=script.rows)
    write_bytes(round_.inbox / "ai-query-log.json", invented_log.log_bytes(rows))


def _put(round_: Round, name: str, document: dict[str, Any], script: Script) -> Path:
    document = broken(document, name, script.break_rule, script.times)
    return write_document(round_.inbox / f"{name.replace('_', '-')}.json", document)


def _labelled(round_: Round, script: Script) -> dict[str, Any]:
    """The labeller sees the worksheet and, apart from it, the private export."""
    export = _current(round_, question_export.KIND)
    questions, _ = read_document(round_.export_file(export["result"]["exportSha256"]))
    worksheet = manifest.labels_worksheet(_current(round_, manifest.KIND))
    return people.labels(worksheet, questions, script.intents, script.times)


def _put_results(round_: Round, script: Script) -> None:
    """Observations, both lanes' reviews, where the evidence is kept, and the release."""
    kit = _current(round_, run_kit.KIND)
    frozen = labels.manifest_of(_current(round_, labels.KIND))
    observed = people.observations(run_kit.observation_worksheet(kit), frozen, script.times, script.slips)
    worksheets = {lane: run_kit.review_worksheet(kit, lane) for lane in run_kit.LANES}
    reviewed = people.reviews(worksheets, observed, script.times, script.slips)
    _put(round_, "observations", observed, script)
    _put(round_, "reviews", reviewed, script)
    _put(round_, "evidence_reference", people.evidence_reference(), script)
    _put(round_, "release_manifest", people.release_manifest(), script)


def _current(round_: Round, kind: str) -> Artifact:
    return load_verified(round_.current_file(kind), REBUILDS, kind=kind)


def _paper(round_: Round, stem: str) -> Path:
    return max(round_.worksheets.glob(f"{stem}.*.json"), key=lambda path: path.stat().st_mtime_ns)
