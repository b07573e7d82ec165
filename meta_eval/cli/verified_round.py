"""A round under audit: each artifact by itself, the chain between them, and each stage run again from its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from meta_eval.cli.output import progress
from meta_eval.cli.verified_files import Row, judged_file, refused
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import first_difference
from meta_eval.home import evidence_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.production.chain import Surroundings, broken_link, unlike_upstream
from meta_eval.lanes.production.remaking import remade
from meta_eval.lanes.production.rounds import INBOX, Round
from meta_eval.lanes.production.stages import input_name


def verified_round(round_: Round) -> Iterator[Row]:
    """The row of every artifact of a round."""
    found = [(file, *judged_file(file)) for file in round_.root.files_of_round(round_.name)]
    by_digest = {artifact["digest"]: artifact for _, _, artifact in found if artifact is not None}
    around = Surroundings(
        round_name=round_.name,
        digests=by_digest.keys(),
        receipts=round_.receipts(),
        loaded=_loaded(round_.name),
        key=round_.key_digest(),
        elsewhere=_elsewhere(round_) if round_.root.shared else frozenset(),
    )
    kinds = {artifact["artifact"] for artifact in by_digest.values()}
    newest = {file for kind in kinds for file in round_.artifact_files(kind)[-1:]}
    for file, result, artifact in found:
        problem = None
        if artifact is not None and str(file).replace("\\", "/").split("/")[-2] != artifact["artifact"]:
            problem = ("kept in the folder of another kind", "/artifact")
        elif artifact is not None:
            problem = broken_link(artifact, around, file_name=file.name, newest=file in newest)
            if problem is None and (pointer := unlike_upstream(artifact, by_digest)) is not None:
                problem = ("keeps something else than the artifact that it names holds", pointer)
            unseen = sorted(around.elsewhere & artifact["inputs"].keys())
            if unseen:
                result["notChecked"] = unseen
            elif problem is None and file in newest:
                problem = _made_otherwise(round_, artifact, result)
        yield result if problem is None else refused(file, VerificationError(str(file), *problem))


def _made_otherwise(round_: Round, artifact: Artifact, result: Row) -> tuple[str, str] | None:
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
