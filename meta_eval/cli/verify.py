"""`meta-eval verify`: what an auditor runs, with no Dagster and no trust in whoever wrote the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.places import round_named, round_names
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable, file_receipt, read_document
from meta_eval.evidence.errors import InputError, MetaEvalError, VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.home import evidence_folder, rounds_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.catalogue import REBUILDS
from meta_eval.lanes.production.chain import Surroundings, broken_link, unlike_upstream
from meta_eval.lanes.production.rounds import INBOX, Round
from meta_eval.lanes.production.stages import input_name


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--round", "round_name", metavar="NAME", help="Every artifact of a round, and the chain between them.")
@click.option("--all", "every", is_flag=True, help="Every round.")
@options.as_json
def command(path: Path | None, round_name: str | None, every: bool, as_json: bool) -> None:
    """Replay artifacts and compare them whole.

    PATH is an artifact, or a folder whose artifacts are all verified. Each one is read strictly, its digest is
    checked, and the whole of it is rebuilt from what it keeps, at its own recorded time. In a round, every digest
    that an artifact names must be that of another one there, every receipt that of its file, and where the evidence
    store is at hand, each artifact must be one that the store was given. Where machines share the artifacts, the
    receipts of files that this machine does not hold are named as not checked.

    Exits 1 and names each artifact that fails, with the place of the first difference.
    """
    if sum((path is not None, round_name is not None, every)) != 1:
        raise click.UsageError("give one of PATH, --round NAME and --all")
    if path is not None:
        results = list(_verify_path(path))
    elif round_name is not None:
        results = list(_verify_round(round_named(round_name)))
    else:
        results = [result for name in round_names() for result in _verify_round(round_named(name))]
    if not results:
        raise InputError(
            str(path or round_name or rounds_folder()), "no artifact to verify", next_step="check the name"
        )
    _print(results, as_json=as_json)
    click.get_current_context().exit(0 if all(result["verified"] for result in results) else 1)


def _print(results: list[dict[str, Any]], *, as_json: bool) -> None:
    failed = sum(not result["verified"] for result in results)
    if as_json:
        click.echo(json.dumps({"verified": len(results) - failed, "failed": failed, "artifacts": results}))
        return
    for result in results:
        word = click.style("verified", fg="green") if result["verified"] else click.style("REFUSED ", fg="red")
        told = f"{result['artifact']} {result['status']}" if result["verified"] else result["reason"]
        click.echo(f"{word}  {result['path']}  {told}")
    if unseen := {name for result in results for name in result.get("notChecked", ())}:
        click.echo(
            f"not checked here, for their files lie on another machine: the receipts of {', '.join(sorted(unseen))}"
        )
    click.echo(f"{len(results) - failed} verified, {failed} refused")


def _verify_path(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_dir():
        value, _ = read_document(path)
        yield _result(path, value)[0]
        return
    for file in sorted(path.rglob("*.json")):
        try:
            value, _ = read_document(file)
        except InputError as error:
            yield _refused(file, error)
            continue
        # Worksheets and receipts lie beside artifacts and claim nothing.
        if isinstance(value, dict) and "artifact" in value:
            yield _result(file, value)[0]


def _verify_round(round_: Round) -> Iterator[dict[str, Any]]:
    found: list[tuple[Readable, dict[str, Any], Artifact | None]] = []
    for file in round_.root.files_of_round(round_.name):
        try:
            value, _ = read_document(file)
        except InputError as error:
            found.append((file, _refused(file, error), None))
            continue
        found.append((file, *_result(file, value)))
    by_digest = {artifact["digest"]: artifact for _, _, artifact in found if artifact is not None}
    around = Surroundings(
        round_name=round_.name,
        digests=by_digest.keys(),
        receipts=_receipts(round_),
        loaded=_loaded(round_.name),
        elsewhere=_elsewhere(round_) if round_.root.shared else frozenset(),
    )
    newest = {
        kind: round_.artifact_files(kind)[-1:] for kind in {artifact["artifact"] for artifact in by_digest.values()}
    }
    for file, result, artifact in found:
        problem = None
        if artifact is not None:
            is_newest = file in newest[artifact["artifact"]]
            problem = broken_link(artifact, around, file_name=file.name, newest=is_newest)
            if problem is None and (pointer := unlike_upstream(artifact, by_digest)) is not None:
                problem = ("keeps something else than the artifact that it names holds", pointer)
        if problem is not None:
            yield _refused(file, VerificationError(str(file), *problem))
        elif artifact is not None and (unseen := sorted(around.elsewhere & artifact["inputs"].keys())):
            yield {**result, "notChecked": unseen}
        else:
            yield result


def _receipts(round_: Round) -> set[str]:
    """The receipts of everything that people or an export put into the round."""
    files = [path for names in INBOX.values() for name in names if (path := round_.inbox / name).exists()]
    return {file_receipt(path) for path in [*files, *round_.private.glob("question-export-*.json")]}


def _elsewhere(round_: Round) -> frozenset[str]:
    """The inputs that another machine holds: no file of theirs is here, so their receipts cannot be checked here."""
    held = {input_name(name) for name, files in INBOX.items() if any((round_.inbox / file).exists() for file in files)}
    if any(round_.private.glob("question-export-*.json")):
        held.add("questionExport")
    return frozenset({"questionExport", *map(input_name, INBOX)} - held)


def _loaded(round_name: str) -> set[str] | None:
    """The digests that the evidence store holds for a round; None without a store, or one that never saw it."""
    store = catalogue.evidence_store(evidence_folder())
    if not store.analyst_path.exists():
        return None
    rows = store.rows("SELECT artifact_digest FROM artifacts WHERE round = ?", [round_name])
    return {digest for (digest,) in rows} or None


def _result(file: Readable, value: object) -> tuple[dict[str, Any], Artifact | None]:
    try:
        artifact = verified(value, REBUILDS, source=str(file))
    except MetaEvalError as error:
        return _refused(file, error), None
    kept = {key: artifact[key] for key in ("artifact", "status", "digest")}
    return {"path": str(file), "verified": True, **kept}, artifact


def _refused(file: Readable, error: MetaEvalError) -> dict[str, Any]:
    reason = str(error).removeprefix(f"{file}: ")
    return {"path": str(file), "verified": False, "reason": reason}
