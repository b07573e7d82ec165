"""The gate of every table between the production lane's stages: the one place that names a contract to a gate.

Source: the production contract, and decision 0008. Pandera takes an eighth of a second to load, and most commands gate
no table, so it comes with the first table that is gated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from meta_eval.evidence.artifacts import Blocker

Contract = Literal[
    "CaseCoverage", "CitationDecisions", "EmittedClaims", "ExportedCases",
    "LabelledCases", "Labels", "Reviews", "Traces",
]  # fmt: skip
"""The models of `contracts`."""


def gated(
    contract: Contract,
    rows: Sequence[Mapping[str, Any]],
    *,
    subject: str,
    least_rows: int,
    excused: Mapping[str, int] | None = None,
) -> list[Blocker]:
    """The blockers that rows earn under a contract: see `gates.gate`."""
    from meta_eval.evidence.gates import gate, table
    from meta_eval.lanes.production import contracts

    model = getattr(contracts, contract)
    return gate(model, table(model, rows), subject=subject, least_rows=least_rows, excused=excused)
