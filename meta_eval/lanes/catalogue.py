"""What all lanes add up to: every kind of artifact that can be rebuilt, and every table that the store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.replay import Rebuild
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.golden import evidence_rows as golden_rows
from meta_eval.lanes.golden import gate as golden
from meta_eval.lanes.production import evidence_rows as production_rows
from meta_eval.lanes.production import steps as production
from meta_eval.lanes.sessions import evidence_rows as session_rows
from meta_eval.lanes.sessions import steps as sessions
from meta_eval.lanes.usefulness import evidence_rows as usefulness_rows
from meta_eval.lanes.usefulness import studies as usefulness

REBUILDS: Mapping[str, Rebuild] = {
    **production.REBUILDS,
    **sessions.REBUILDS,
    **usefulness.REBUILDS,
    golden.KIND: golden.rebuild,
}
SCHEMAS: Sequence[Path] = (production_rows.SCHEMA, session_rows.SCHEMA, usefulness_rows.SCHEMA, golden_rows.SCHEMA)


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """The rows that an artifact adds to the store, by table."""
    lanes = (production_rows, session_rows, usefulness_rows, golden_rows)
    return {name: rows for lane in lanes for name, rows in lane.tables_of(artifact).items()}


def evidence_store(folder: Path) -> EvidenceStore:
    """The store in a folder, with the tables of every lane."""
    return EvidenceStore(folder, SCHEMAS)
