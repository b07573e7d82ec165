"""The steps of stages 0 and 9, between files and what judges them: before any round, and after a round's verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meta_eval.evidence.canonical import Readable, read_document
from meta_eval.lanes.production import collection, readiness, release
from meta_eval.lanes.production.steps import Setting, Step


def judge_collection(approval_file: Path | None, setting: Setting, *, switch: bool) -> Step:
    """Stage 0: how far the approval of the collection contract has come."""
    approval, approval_receipt = (None, None) if approval_file is None else read_document(approval_file)
    artifact = collection.judge(
        approval, approval_receipt=approval_receipt, switch=switch, made_at=setting.made_at, policy=setting.policy
    )
    papers: dict[str, Any] = {"collection-contract.json": dict(collection.CONTRACT)}
    if artifact["status"] != collection.READY:
        papers["collection-approval-template.json"] = collection.approval_template()
    return Step(artifact, papers)


def judge_release(
    metrics_file: Readable | None, manifest_file: Path | None, setting: Setting, *, release_folder: Path | None = None
) -> Step:
    """Stage 9: whether a release is ready. A verdict that is missing or not honest is a blocker here, not an error."""
    verdict, verdict_receipt = readiness.Verdict(None, "metrics-missing"), None
    if metrics_file is not None and not (isinstance(metrics_file, Path) and not metrics_file.exists()):
        value, verdict_receipt = read_document(metrics_file)
        verdict = readiness.believed(value, source=str(metrics_file))
    document: Any = None
    document_receipt = None
    if manifest_file is not None and manifest_file.exists():
        document, document_receipt = read_document(manifest_file)
    files = None
    if release_folder is not None and readiness.is_manifest(document):
        files = release.compared(release.listed(release_folder), document)
    return Step(
        readiness.judge(
            verdict,
            verdict_receipt=verdict_receipt,
            release_manifest=document,
            release_receipt=document_receipt,
            release_files=files,
            made_at=setting.made_at,
            policy=setting.policy,
            round_name=setting.round_name,
        )
    )
