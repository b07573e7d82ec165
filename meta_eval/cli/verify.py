"""`meta-eval verify`: what an auditor runs, with no Dagster and no trust in whoever wrote the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import file_receipt, read_document
from meta_eval.evidence.errors import InputError, MetaEvalError, VerificationError
from meta_eval.evidence.register import Entry
from meta_eval.evidence.replay import verified
from meta_eval.home import evidence_folder, home_folder, rounds_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.catalogue import REBUILDS
from meta_eval.lanes.production.chain import Surroundings, broken_link, unlike_upstream
from meta_eval.lanes.production.rounds import INBOX, Round
from meta_eval.lanes.usefulness import chain as study_chain
from meta_eval.lanes.usefulness.studies import KIND_OF, Study


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--round", "round_name", metavar="NAME", help="Every artifact of a round, and the chain between them.")
@click.option("--study", "study_name", metavar="NAME", help="A study's registers, its artifacts, and their chain.")
@click.option("--all", "every", is_flag=True, help="Every round and every study.")
@options.as_json
def command(path: Path | None, round_name: str | None, study_name: str | None, every: bool, as_json: bool) -> None:
    """Replay artifacts and compare them whole.

    PATH is an artifact, or a folder whose artifacts are all verified. Each one is read strictly, its digest is
    checked, and the whole of it is rebuilt from what it keeps, at its own recorded time. In a round, every digest
    that an artifact names must be that of another one there, every receipt that of its file, and where the evidence
    store is at hand, each artifact must be one that the store was given. In a study,
    both registers must be whole, and what each artifact keeps of the others and of the registers what these hold.

    Exits 1 and names each artifact that fails, with the place of the first difference.
    """
    if sum((path is not None, round_name is not None, study_name is not None, every)) != 1:
        raise click.UsageError("give one of PATH, --round NAME, --study NAME and --all")
    if path is not None:
        results = list(_verify_path(path))
    elif round_name is not None:
        results = list(_verify_round(Round(rounds_folder(), round_name)))
    elif study_name is not None:
        results = list(_verify_study(Study(_studies_folder(), study_name)))
    else:
        rounds = [Round(rounds_folder(), name) for name in _names(rounds_folder())]
        studies = [Study(_studies_folder(), name) for name in _names(_studies_folder())]
        results = [result for round_ in rounds for result in _verify_round(round_)]
        results += [result for place in studies for result in _verify_study(place)]
    if not results:
        raise InputError(
            str(path or round_name or study_name or home_folder()), "no artifact to verify", next_step="check the name"
        )
    _print(results, as_json=as_json)
    click.get_current_context().exit(0 if all(result["verified"] for result in results) else 1)


def _studies_folder() -> Path:
    return home_folder() / "studies"


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.glob("*") if entry.is_dir())


def _print(results: list[dict[str, Any]], *, as_json: bool) -> None:
    failed = sum(not result["verified"] for result in results)
    if as_json:
        click.echo(json.dumps({"verified": len(results) - failed, "failed": failed, "artifacts": results}))
        return
    for result in results:
        word = click.style("verified", fg="green") if result["verified"] else click.style("REFUSED ", fg="red")
        told = f"{result['artifact']} {result['status']}" if result["verified"] else result["reason"]
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
    found = [(file, *_read_result(file)) for file in sorted(round_.artifacts.glob("*/*.json"))]
    by_digest = {artifact["digest"]: artifact for _, _, artifact in found if artifact is not None}
    around = Surroundings(
        round_name=round_.name,
        digests=by_digest.keys(),
        receipts=_receipts(round_),
        loaded=_loaded(round_.name),
    )
    for file, result, artifact in found:
        problem = None
        if artifact is not None:
            newest = file == round_.artifact_files(artifact["artifact"])[-1]
            problem = broken_link(artifact, around, file_name=file.name, newest=newest)
            if problem is None and (pointer := unlike_upstream(artifact, by_digest)) is not None:
                problem = ("keeps something else than the artifact that it names holds", pointer)
        yield result if problem is None else _refused(file, VerificationError(str(file), *problem))


def _verify_study(place: Study) -> Iterator[dict[str, Any]]:
    """Both registers, every artifact in the folder, and the chain between those that the register names."""
    chains: list[list[Entry]] = []
    for chain in (place.register, place.ledger):
        try:
            chains.append(chain.entries())
        except MetaEvalError as error:
            yield _refused(chain.path, error)
            continue
        if chains[-1]:
            yield {
                "path": str(chain.path),
                "verified": True,
                "artifact": "register",
                "status": f"of {len(chains[-1])} entries",
                "digest": chains[-1][-1]["digest"],
            }
    found = [(file, *_read_result(file)) for file in sorted(place.artifacts.glob("*/*.json"))]
    if len(chains) < 2:
        yield from (result for _, result, _ in found)
        return
    entries, ledger = chains
    named = {e["body"]["digest"]: KIND_OF[e["event"]] for e in entries if e["event"] in KIND_OF}
    on_record = {one["digest"]: one for _, _, one in found if one is not None and one["digest"] in named}
    recorded = study_chain.Recorded(on_record, entries, ledger)
    for file, result, artifact in found:
        problem = None
        if artifact is not None and artifact["digest"] in named:
            problem = study_chain.broken_link(artifact, recorded, study_name=place.name)
        yield result if problem is None else _refused(file, VerificationError(str(file), *problem))
    for digest, kind in named.items():
        if digest not in on_record:
            gone = InputError(str(place.artifacts / kind), "the artifact that the register names is gone or not honest")
            yield _refused(place.artifacts / kind, gone)


def _read_result(file: Path) -> tuple[dict[str, Any], Artifact | None]:
    try:
        value, _ = read_document(file)
    except InputError as error:
        return _refused(file, error), None
    return _result(file, value)


def _receipts(round_: Round) -> set[str]:
    """The receipts of everything that people or an export put into the round."""
    files = [path for names in INBOX.values() for name in names if (path := round_.inbox / name).exists()]
    return {file_receipt(path) for path in [*files, *round_.private.glob("question-export-*.json")]}


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
