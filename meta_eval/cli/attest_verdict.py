"""`meta-eval attest-verdict`, `verify-verdict` and `keygen`: a verdict that other tools can check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.places import round_named
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import canonical_bytes, read_document
from meta_eval.evidence.errors import UsageError, VerificationError
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.evidence.replay import first_difference, load_verified
from meta_eval.lanes.catalogue import REBUILDS
from meta_eval.lanes.production import metrics
from meta_eval.lanes.production.verdict_statement import statement_of


@click.command("attest-verdict")
@click.option("--round", "round_name", metavar="NAME", help="The newest verdict of this round.")
@options.file("--verdict", "A production-metrics artifact.")
@options.file("--key", "A signing key made by `meta-eval keygen`; without one the Statement is written unsigned.")
@click.option("--output", type=options.FILE, required=True, metavar="FILE", help="Where to write it.")
@options.as_json
def attest(round_name: str | None, verdict: Path | None, key: Path | None, output: Path, as_json: bool) -> None:
    """Write a verdict as an in-toto Statement, signed as a DSSE envelope where a key is given.

    The verdict is replayed first. A rehearsal becomes WARNED, never PASSED.
    """
    statement = statement_of(_verdict(round_name, verdict))
    if key is None:
        write_document(output, statement)
    else:
        from meta_eval.evidence.signatures import envelope_bytes, private_key, signed_envelope

        write_bytes(output, envelope_bytes(signed_envelope(canonical_bytes(statement), private_key(key))))
    _told(statement, output, signed=key is not None, as_json=as_json)


@click.command("verify-verdict")
@click.argument("path", type=options.FILE, metavar="FILE")
@options.file("--key", "The verifying key (.pub.pem); without one the file must be a plain Statement.")
@click.option("--round", "round_name", metavar="NAME", help="The round whose newest verdict it must be.")
@options.file("--verdict", "The production-metrics artifact that it must be of.")
@options.as_json
def verify(path: Path, key: Path | None, round_name: str | None, verdict: Path | None, as_json: bool) -> None:
    """Verify a Statement: its signature, and that it says what the replayed verdict says.

    Exits 1 where the signature is not the key's, or where the Statement differs from the verdict.
    """
    value, _ = read_document(path)
    if key is not None:
        from meta_eval.evidence.signatures import opened_envelope, public_key

        value = opened_envelope(value, public_key(key), source=str(path))
    elif isinstance(value, dict) and "payload" in value:
        raise UsageError(f"{path}: a signed envelope; give the verifying key with --key FILE")
    expected = statement_of(_verdict(round_name, verdict))
    if (pointer := first_difference(value, expected)) is not None:
        raise VerificationError(str(path), "differs from what the verdict says", pointer)
    _told(expected, path, signed=key is not None, as_json=as_json)


@click.command("keygen")
@click.argument("path", type=options.FILE, metavar="FILE")
@options.as_json
def keygen(path: Path, as_json: bool) -> None:
    """Make an Ed25519 key pair: FILE for signing (0600, keep it to yourself) and FILE.pub.pem for those who verify."""
    from meta_eval.evidence.signatures import make_key_pair

    public = path.with_name(f"{path.name}.pub.pem")
    told = {"keyId": make_key_pair(path, public), "signing": str(path), "verifying": str(public)}
    click.echo(json.dumps(told) if as_json else "\n".join(f"{name:<10} {value}" for name, value in told.items()))


def _verdict(round_name: str | None, verdict: Path | None) -> Artifact:
    if (round_name is None) == (verdict is None):
        raise click.UsageError("give one of --round NAME and --verdict FILE")
    path = verdict or round_named(round_name or "").current_file(metrics.KIND)
    return load_verified(path, REBUILDS, kind=metrics.KIND)


def _told(statement: dict[str, Any], path: Path, *, signed: bool, as_json: bool) -> None:
    predicate = statement["predicate"]
    told = {"result": predicate["result"], "signed": signed, "statement": str(path)}
    if as_json:
        click.echo(json.dumps(told))
        return
    click.echo(f"{predicate['result']}  {'signed' if signed else 'unsigned'}  {path}")
    for word in ("passed", "warned", "failed"):
        for test in predicate[f"{word}Tests"]:
            click.echo(f"  {word}  {test}")
