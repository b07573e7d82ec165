"""The private question export on disk: written case by case, and under its name only once it is whole.

Source: the production evaluation document, the question export. The document is canonical JSON; its cases may be
more than memory holds, so none of it is ever there at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from meta_eval.evidence.canonical import canonical_bytes, file_receipt
from meta_eval.evidence.files import private_folder, remove_partials, replacing
from meta_eval.lanes.production.query_log import ScannedLog
from meta_eval.lanes.production.query_log.spill import as_our_own
from meta_eval.lanes.production.question_export import Judged


def write_export(judged: Judged, scanned: ScannedLog, export_file: Callable[[str], Path]) -> str:
    """Write the export of a scan that nothing blocks, and return its receipt.

    The file's name may hold its receipt, so the text is drafted in the scan's private folder first.

    Args:
        export_file: where the export goes, given its receipt.

    Raises:
        OverwriteError: that name holds other contents.
        InputError: the folder cannot be written.
        MetaEvalError: the private folder has no room or cannot be written.
    """
    draft = scanned.folder / "export.json"
    receipt = _drafted(draft, _pieces(judged, scanned))
    target = export_file(receipt)
    remove_partials(private_folder(target.parent))
    # What is there already is not read into memory to find that it is the same.
    if target.is_file() and not target.is_symlink() and file_receipt(target) == receipt:
        return receipt
    with draft.open("rb") as source, replacing(target) as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return receipt


def _drafted(draft: Path, pieces: Iterator[bytes]) -> str:
    sha = hashlib.sha256()
    with as_our_own(), os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for piece in pieces:
            sha.update(piece)
            file.write(piece)
    return sha.hexdigest()


def _pieces(judged: Judged, scanned: ScannedLog) -> Iterator[bytes]:
    """The canonical JSON of the whole export: of its four keys "cases" comes first."""
    rest = canonical_bytes({"environment": judged.environment, "source": judged.source, "version": 1})
    yield b'{"cases":['
    yield from scanned.cases()
    yield b"]," + rest.removeprefix(b"{")
