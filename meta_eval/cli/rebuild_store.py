"""`meta-eval rebuild-store`: the evidence store again, from the artifacts of every round."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import MetaEvalError
from meta_eval.evidence.replay import load_verified
from meta_eval.home import artifact_root, evidence_folder
from meta_eval.lanes import catalogue


@click.command("rebuild-store")
@options.as_json
def command(as_json: bool) -> None:
    """Make the evidence store anew from the artifacts that are kept, each of them verified.

    For a store that is damaged, or that says it holds fewer rows than its artifacts brought. The old store stays in
    place until the new one is whole. An artifact that does not verify is named and left out.

    Exits 1 where an artifact was left out.
    """
    refused: list[str] = []
    loaded = catalogue.evidence_store(evidence_folder()).rebuild(_artifacts(refused))
    if as_json:
        click.echo(json.dumps({"loaded": loaded, "refused": refused}))
    else:
        for reason in refused:
            click.echo(f"left out  {reason}", err=True)
        click.echo(f"{loaded:,} artifacts loaded, {len(refused):,} left out; published for analysts")
    click.get_current_context().exit(1 if refused else 0)


def _artifacts(refused: list[str]) -> Iterator[tuple[Artifact, Mapping[str, Any]]]:
    """Every verified artifact of every round, oldest first, each digest once."""
    seen = set()
    for path in artifact_root().every_file():
        try:
            artifact = load_verified(path, catalogue.REBUILDS)
        except MetaEvalError as error:
            refused.append(str(error))
            continue
        if artifact["digest"] not in seen:
            seen.add(artifact["digest"])
            yield artifact, catalogue.tables_of(artifact)
