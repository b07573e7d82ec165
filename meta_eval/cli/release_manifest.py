"""`meta-eval release-manifest`: the files of a release, so that a verdict is bound to what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import click

from meta_eval.cli import options
from meta_eval.evidence.canonical import digest, read_document
from meta_eval.evidence.documents import read
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.files import write_document
from meta_eval.lanes.production import documents, release


@click.command("release-manifest")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option("--output", type=options.FILE, metavar="FILE", help="Where to write the manifest.")
@click.option("--check", type=options.FILE, metavar="FILE", help="Compare the folder with this manifest instead.")
@options.as_json
def command(folder: Path, output: Path | None, check: Path | None, as_json: bool) -> None:
    """List every file of a release in ascending order of path, each with its SHA-256.

    Links are refused, for what they lead to could change without the release; so are special files, and two names
    that differ by case or by Unicode form only.
    """
    if (output is None) == (check is None):
        raise click.UsageError("give --output FILE to write a manifest, or --check FILE to compare with one")
    files = release.listed(folder)
    manifest = {"version": 1, "files": files}
    problems = read(manifest, documents.RELEASE_MANIFEST, subject="releaseManifest").blockers
    if problems or not files:
        rule = problems[0].code if problems else "no file to release"
        raise InputError(str(folder), rule, next_step="rename or remove what does not belong to a release")
    if check is not None:
        expected, _ = read_document(check)
        if expected != manifest:
            raise VerificationError(str(check), "the folder differs from this manifest", _first_path(expected, files))
    elif output is not None:
        write_document(output, manifest)
    told = {"files": len(files), "releaseDigest": digest(manifest), "manifest": str(output or check)}
    click.echo(json.dumps(told) if as_json else "\n".join(f"{key:<14} {value}" for key, value in told.items()))


def _first_path(expected: object, files: list[dict[str, str]]) -> str:
    """Where two manifests first differ, as a pointer into the file list."""
    listed = expected.get("files") if isinstance(expected, dict) else None
    if not isinstance(listed, list):
        return "/files"
    for index, (one, other) in enumerate(zip(listed, files, strict=False)):
        if one != other:
            return f"/files/{index}"
    return f"/files/{min(len(listed), len(files))}"
