"""What verification says of each artifact: a row a file, verified or refused with the rule and the place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable, read_document
from meta_eval.evidence.errors import InputError, MetaEvalError
from meta_eval.evidence.replay import verified
from meta_eval.lanes.catalogue import REBUILDS

Row = dict[str, Any]


def verified_path(path: Path) -> Iterator[Row]:
    """An artifact, or every artifact under a folder. Raises InputError for a single file that cannot be read."""
    if not path.is_dir():
        value, _ = read_document(path)
        yield _judged(path, value)[0]
        return
    for file in sorted(path.rglob("*.json")):
        try:
            value, _ = read_document(file)
        except InputError as error:
            yield refused(file, error)
            continue
        # Worksheets and receipts lie beside artifacts and claim nothing.
        if isinstance(value, dict) and "artifact" in value:
            yield _judged(file, value)[0]


def judged_file(file: Readable) -> tuple[Row, Artifact | None]:
    """A file's row, and its artifact where it verified."""
    try:
        value, _ = read_document(file)
    except InputError as error:
        return refused(file, error), None
    return _judged(file, value)


def _judged(file: Readable, value: object) -> tuple[Row, Artifact | None]:
    try:
        artifact = verified(value, REBUILDS, source=str(file))
    except MetaEvalError as error:
        return refused(file, error), None
    kept = {key: artifact[key] for key in ("artifact", "status", "digest")}
    return {"path": str(file), "verified": True, **kept}, artifact


def refused(file: Readable, error: MetaEvalError) -> Row:
    """The row of a file that does not verify."""
    reason = str(error).removeprefix(f"{file}: ")
    return {"path": str(file), "verified": False, "reason": reason}
