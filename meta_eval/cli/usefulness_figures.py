"""How a study's figures look in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def figure_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The paired table of each set and of both, the conditions, and how far the scorers agreed."""
    yield ""
    yield (
        f"{'set':<12} {'baseline':>9} {'candidate':>10} {'both':>6} {'recoveries':>11} {'losses':>7} "
        f"{'neither':>8} {'gain':>6} {'of':>5}"
    )
    for name, table in [*sorted(result["sets"].items()), ("both sets", result["combined"])]:
        useful = table["useful"]
        yield (
            f"{name:<12} {useful['baseline']:>9} {useful['candidate']:>10} {table['both']:>6} "
            f"{table['recoveries']:>11} {table['losses']:>7} {table['neither']:>8} {table['gain']:>+6} "
            f"{table['questions']:>5}"
        )
    yield ""
    for name, met in sorted(result["met"].items()):
        yield f"{name:<24} {'met' if met else 'MISSED'}"
    agreed = result["agreement"]
    kappa = "not defined" if agreed["kappa"] is None else f"{agreed['kappa']:.3f}"
    yield f"{'scorers agreed':<24} {agreed['agreed']} of {agreed['pairs']}, kappa {kappa}"
    yield f"{'adjudicated':<24} {result['adjudicated']}"
