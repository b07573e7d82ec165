"""The steps between files and stages: read, verify, call the pure stage, and hand back what to write.

A stage never trusts an upstream file, whatever anybody recorded about it: each step verifies the artifacts that it
reads. The clock, the paths and the policy come from the front door that calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable, read_document
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.files import private_folder, replacing
from meta_eval.evidence.replay import Rebuild, load_verified
from meta_eval.lanes.production import (
    attestation,
    bundle,
    collection,
    labels,
    manifest,
    metrics,
    question_export,
    readiness,
    run_kit,
)
from meta_eval.lanes.production.export_file import write_export
from meta_eval.lanes.production.policy import CURRENT_POLICY, Policy
from meta_eval.lanes.production.pseudonyms import KEY_BYTES, case_ids
from meta_eval.lanes.production.query_log import LARGE_LOG, RECORD_NAME, Engine, processes_for, scan_again, scan_log

REBUILDS: Mapping[str, Rebuild] = {
    attestation.KIND: attestation.rebuild,
    question_export.KIND: question_export.rebuild,
    manifest.KIND: manifest.rebuild,
    labels.KIND: labels.rebuild,
    run_kit.KIND: run_kit.rebuild,
    bundle.KIND: bundle.rebuild,
    metrics.KIND: metrics.rebuild,
    collection.KIND: collection.rebuild,
    readiness.KIND: readiness.rebuild,
}
KEY_NAME = "pseudonym.key"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """What every step needs besides its files: the clock (milliseconds), the round, the policy."""

    made_at: int
    round_name: str | None = None
    policy: Policy = CURRENT_POLICY
    on_rows: Progress | None = None
    """Called with rows and bytes so far while a log is read."""
    engine: Engine | None = None
    """Who reads a log and judges its rows, where it is not this machine's own processes."""


@dataclass(frozen=True)
class Step:
    """What a step made: the artifact, and the worksheets or receipts that people take from it, by file name."""

    artifact: Artifact
    papers: Mapping[str, Any] = field(default_factory=dict)


def attest_log(log: Path, setting: Setting, *, private: Path | None = None) -> Step:
    """Stage 1 and 2: classify every row of a log and tell what it amounts to.

    Args:
        private: the folder where a large log's record is kept, for the export to be quicker; by default none is.
    """
    record = private / RECORD_NAME if private and _is_large(log) else None
    with scan_log(log, **_reading(log, setting), record=record, engine=setting.engine) as scanned:
        artifact = attestation.attest(
            scanned.log, made_at=setting.made_at, policy=setting.policy, round_name=setting.round_name
        )
    return Step(artifact, {"attestation-template.json": artifact["result"]["attestationTemplate"]})


def export_questions(
    log: Path,
    attestation_file: Path,
    setting: Setting,
    *,
    key: bytes,
    export_file: Callable[[str], Path],
    private: Path | None = None,
) -> Step:
    """Stage 3: write the private export, if nothing blocks it, and its public receipt.

    Args:
        key: the round's pseudonym key.
        private: the folder where `attest_log` may have kept a record.
        export_file: where the export goes, given its receipt; called only when there is something to write.
    """
    document, document_receipt = read_document(attestation_file)
    with ExitStack() as stack:
        scanned = None
        reading = _reading(log, setting) | {"pseudonyms": partial(case_ids, key=key)}
        # Another engine judges the whole log again: a record tells rows by number, which only a whole reading knows.
        if private is not None and setting.engine is None:
            scanned = stack.enter_context(scan_again(log, private / RECORD_NAME, **reading))
        if scanned is None:
            scanned = stack.enter_context(scan_log(log, **reading, engine=setting.engine))
        judged = question_export.judge(
            scanned.log,
            document,
            attestation_receipt=document_receipt,
            key=key,
            made_at=setting.made_at,
            policy=setting.policy,
        )
        export_receipt = None
        if not judged.blockers:
            export_receipt = write_export(judged, scanned, export_file)
    artifact = question_export.seal(
        judged,
        export_receipt=export_receipt,
        made_at=setting.made_at,
        policy=setting.policy,
        round_name=setting.round_name,
    )
    return Step(artifact, {"question-export-receipt.json": question_export.public_receipt(artifact)})


def prepare_manifest(export_file: Path, setting: Setting) -> Step:
    """Stage 4: blank labels from an export."""
    document, export_receipt = read_document(export_file)
    artifact = manifest.prepare(
        document,
        export_receipt=export_receipt,
        made_at=setting.made_at,
        policy=setting.policy,
        round_name=setting.round_name,
    )
    ready = artifact["status"] == "ready"
    return Step(artifact, {"labels-worksheet.json": manifest.labels_worksheet(artifact)} if ready else {})


def freeze_labels(labels_file: Path, prepared_file: Readable, setting: Setting) -> Step:
    """Stage 5: check the completed manifest against the prepared one."""
    prepared = _upstream(prepared_file, manifest.KIND, setting)
    document, labels_receipt = read_document(labels_file)
    return Step(
        labels.freeze(
            document,
            prepared,
            labels_receipt=labels_receipt,
            made_at=setting.made_at,
            policy=setting.policy,
            round_name=setting.round_name,
        )
    )


def prepare_run_kit(
    frozen_file: Readable, operator: object, setting: Setting, *, operator_receipt: str | None = None
) -> Step:
    """Stage 6: blank worksheets for the run and its reviews."""
    kit = run_kit.prepare_run(
        _upstream(frozen_file, labels.KIND, setting),
        operator,
        made_at=setting.made_at,
        policy=setting.policy,
        operator_receipt=operator_receipt,
        round_name=setting.round_name,
    )
    if kit["status"] != "ready":
        return Step(kit)
    papers = {"observation-worksheet.json": run_kit.observation_worksheet(kit)}
    papers |= {f"review-worksheet-{lane.lower()}.json": run_kit.review_worksheet(kit, lane) for lane in run_kit.LANES}
    return Step(kit, papers)


@dataclass(frozen=True)
class BundleFiles:
    """The files that a bundle is assembled from."""

    observations: Path
    reviews: Path
    release_manifest: Path
    frozen: Readable
    kit: Readable | None = None


def assemble_bundle(
    files: BundleFiles, setting: Setting, *, evidence_reference: Any, reference_receipt: str | None, operator_code: str
) -> Step:
    """Stage 7: join labels, observations, reviews and release."""
    frozen = _upstream(files.frozen, labels.KIND, setting)
    kit = None if files.kit is None else _upstream(files.kit, run_kit.KIND, setting)
    observations, observations_receipt = read_document(files.observations)
    reviews, reviews_receipt = read_document(files.reviews)
    release, release_receipt = read_document(files.release_manifest)
    receipts = {
        "observations": observations_receipt,
        "reviews": reviews_receipt,
        "releaseManifest": release_receipt,
    }
    if reference_receipt is not None:
        receipts["evidenceReference"] = reference_receipt
    return Step(
        bundle.assemble(
            frozen,
            observations=observations,
            reviews=reviews,
            evidence_reference=evidence_reference,
            release_manifest=release,
            operator_code=operator_code,
            receipts=receipts,
            made_at=setting.made_at,
            policy=setting.policy,
            kit=kit,
            round_name=setting.round_name,
        )
    )


def evaluate_bundle(frozen_file: Readable, assembled_file: Readable, setting: Setting) -> Step:
    """Stage 8: recompute the metrics."""
    frozen = _upstream(frozen_file, labels.KIND, setting)
    assembled = _upstream(assembled_file, bundle.KIND, setting)
    return Step(
        metrics.evaluate(
            frozen, assembled, made_at=setting.made_at, policy=setting.policy, round_name=setting.round_name
        )
    )


def _upstream(path: Readable, kind: str, setting: Setting) -> Artifact:
    """An artifact that a step is made from, verified, and of the step's own round where it has one.

    Raises:
        VerificationError: it is not honest, or was copied from another round.
    """
    artifact = load_verified(path, REBUILDS, kind=kind)
    if setting.round_name is not None and artifact["round"] != setting.round_name:
        raise VerificationError(str(path), "belongs to another round", "/round")
    return artifact


def pseudonym_key(path: Path, *, make: bool) -> bytes:
    """A round's pseudonym key: read, or made at first use as 32 random bytes that only the owner can read.

    Raises:
        InputError: no such key where none may be made, another length, or readable by others.
    """
    if make and not path.exists():
        private_folder(path.parent)
        with replacing(path) as file:
            file.write(os.urandom(KEY_BYTES))
    try:
        key, mode = path.read_bytes(), path.stat().st_mode & 0o077
    except OSError as error:
        raise InputError(str(path), "no pseudonym key can be read here", next_step="check the path") from error
    if len(key) != KEY_BYTES:
        raise InputError(str(path), "a pseudonym key is exactly 32 bytes", next_step="restore the round's own key")
    if mode:
        raise InputError(str(path), "a pseudonym key that others can read", next_step="chmod 600 it, or make a new one")
    return key


def _is_large(log: Path) -> bool:
    return log.is_file() and log.stat().st_size >= LARGE_LOG


def _reading(log: Path, setting: Setting) -> dict[str, Any]:
    """How a step reads a log."""
    return {
        "as_of_ms": setting.made_at,
        "policy": setting.policy,
        "on_rows": setting.on_rows,
        "processes": processes_for(log),
    }
