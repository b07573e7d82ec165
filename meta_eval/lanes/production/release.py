"""The files of a release: listed with their SHA-256, and compared with what a manifest says.

A release is bound by its manifest's digest, so a listing must mean one thing on every machine: paths ascend, links and
special files are refused, and so are two paths that some file system would take for one.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from meta_eval.evidence.canonical import file_receipt
from meta_eval.evidence.errors import InputError

COMPARED = ("missing", "changed", "unlisted")


def listed(folder: Path) -> list[dict[str, str]]:
    """Every file below a folder as `{path, sha256}`, in ascending order of path.

    Raises:
        InputError: a link, a special file, a name that is not UTF-8, two names that differ by case or by Unicode form
            only, or something that cannot be read.
    """
    paths: dict[str, Path] = {}
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        for name in (*folders, *names):
            path = Path(place, name)
            if path.is_symlink():
                raise InputError(_shown(path), "a link in a release", next_step="release the file itself")
            if not (path.is_file() or path.is_dir()):
                raise InputError(_shown(path), "neither a file nor a folder", next_step="take it out of the release")
        paths |= {Path(place, name).relative_to(folder).as_posix(): Path(place, name) for name in names}
    _one_name_each(folder, paths)
    return [{"path": name, "sha256": file_receipt(path)} for name, path in sorted(paths.items())]


def compared(files: list[dict[str, str]], manifest: Mapping[str, Any]) -> dict[str, int]:
    """How many files a manifest lists that are not there (`missing`) or have other bytes (`changed`), and how many are
    there that it does not list (`unlisted`)."""
    there = {entry["path"]: entry["sha256"] for entry in files}
    due = {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    return {
        "missing": len(due.keys() - there.keys()),
        "changed": sum(there[path] != due[path] for path in due.keys() & there.keys()),
        "unlisted": len(there.keys() - due.keys()),
    }


def _one_name_each(folder: Path, paths: Mapping[str, Path]) -> None:
    seen: set[str] = set()
    for name in paths:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(str(folder), "a file name that is not UTF-8", next_step="rename the file") from None
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        if folded in seen:
            rule = "two names that differ by case or by Unicode form only"
            raise InputError(str(folder), rule, next_step="rename one of the two")
        seen.add(folded)


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "replace").decode("utf-8")


def _unreadable(error: OSError) -> NoReturn:
    raise InputError(str(error.filename), "cannot be listed", next_step="check the folder's permissions") from error
