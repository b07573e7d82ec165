"""`meta-eval verify`: what an auditor runs, with no Dagster and no trust in whoever wrote the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.output import progress
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.errors import InputError, MetaEvalError, VerificationError
from meta_eval.evidence.replay import first_difference, verified
from meta_eval.home import evidence_folder, rounds_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.catalogue import REBUILDS
from meta_eval.lanes.production.chain import Surroundings, broken_link, unlike_upstream
from meta_eval.lanes.production.remaking import remade
from meta_eval.lanes.production.rounds import INBOX, Round


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
    store is at hand, each artifact must be one that the store was given. Where the round still holds the files that
    an artifact was made from, its stage is run again from them, and must make the same artifact.

    Exits 1 and names each artifact that fails, with the place of the first difference.
    """
    if sum((path is not None, round_name is not None, every)) != 1:
        raise click.UsageError("give one of PATH, --round NAME and --all")
    if path is not None:
        results = list(_verify_path(path))
    elif round_name is not None:
        results = list(_verify_round(Round(rounds_folder(), round_name)))
    else:
        names = sorted(folder.name for folder in rounds_folder().glob("*") if folder.is_dir())
        results = [result for name in names for result in _verify_round(Round(rounds_folder(), name))]
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
        told += ", made again from its files" if result.get("madeAgain") and result["verified"] else ""
        click.echo(f"{word}  {result['path']}  {told}")
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
    found: list[tuple[Path, dict[str, Any], Artifact | None]] = []
    for file in sorted(round_.artifacts.glob("*/*.json")):
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
        receipts=round_.receipts(),
        loaded=_loaded(round_.name),
        key=round_.key_digest(),
    )
    for file, result, artifact in found:
        problem = None
        if artifact is not None and file.parent.name != artifact["artifact"]:
            problem = ("kept in the folder of another kind", "/artifact")
        elif artifact is not None:
            newest = file == round_.artifact_files(artifact["artifact"])[-1]
            problem = broken_link(artifact, around, file_name=file.name, newest=newest)
            if problem is None and (pointer := unlike_upstream(artifact, by_digest)) is not None:
                problem = ("keeps something else than the artifact that it names holds", pointer)
            if problem is None and newest:
                problem = _made_otherwise(round_, artifact, result)
        yield result if problem is None else _refused(file, VerificationError(str(file), *problem))


def _made_otherwise(round_: Round, artifact: Artifact, result: dict[str, Any]) -> tuple[str, str] | None:
    """What an artifact says otherwise than its stage does when it is run again from the files at hand, or None."""
    logs = [path for name in INBOX["query_log"] if (path := round_.inbox / name).exists()]
    try:
        with progress(logs[0]) if logs else nullcontext() as on_rows:
            again = remade(round_, artifact, on_rows=on_rows)
    except VerificationError as error:
        return error.rule, error.pointer
    result["madeAgain"] = again is not None
    if again is None or again["digest"] == artifact["digest"]:
        return None
    pointer = first_difference(artifact | {"digest": ""}, again | {"digest": ""})
    return "differs from what its stage makes of the files that it names", pointer or "/digest"


def _loaded(round_name: str) -> set[str] | None:
    """The digests that the evidence store holds for a round; None without a store, or one that never saw it."""
    store = catalogue.evidence_store(evidence_folder())
    if not store.analyst_path.exists():
        return None
    rows = store.rows("SELECT artifact_digest FROM artifacts WHERE round = ?", [round_name])
    return {digest for (digest,) in rows} or None


def _result(file: Path, value: object) -> tuple[dict[str, Any], Artifact | None]:
    try:
        artifact = verified(value, REBUILDS, source=str(file))
    except MetaEvalError as error:
        return _refused(file, error), None
    kept = {key: artifact[key] for key in ("artifact", "status", "digest")}
    return {"path": str(file), "verified": True, **kept}, artifact


def _refused(file: Path, error: MetaEvalError) -> dict[str, Any]:
    reason = str(error).removeprefix(f"{file}: ")
    return {"path": str(file), "verified": False, "reason": reason}
