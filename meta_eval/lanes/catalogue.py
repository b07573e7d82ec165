"""What all lanes add up to: every kind of artifact that can be rebuilt, and every table that the store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.replay import Rebuild
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.production import evidence_rows as production_rows
from meta_eval.lanes.production import steps as production

REBUILDS: Mapping[str, Rebuild] = {**production.REBUILDS}
SCHEMAS: Sequence[Path] = (production_rows.SCHEMA,)


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """The rows that an artifact adds to the store, by table."""
    return production_rows.tables_of(artifact)


def evidence_store(folder: Path) -> EvidenceStore:
    """The store in a folder, with the tables of every lane."""
    return EvidenceStore(folder, SCHEMAS)
