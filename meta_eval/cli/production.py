"""`meta-eval production`: one command a stage.

A stage is called in one of two ways: with its input files and `--output DIR`, or with `--round NAME` alone, which
takes what the round's folder holds and keeps what the stage makes there, and its rows in the evidence store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.output import exit_code, progress, report
from meta_eval.cli.places import round_named
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.home import artifact_root, evidence_folder, log_engine
from meta_eval.lanes import catalogue
from meta_eval.lanes.production import guidance, readiness_page, readiness_steps, stages, steps
from meta_eval.lanes.production.query_log import Engine
from meta_eval.lanes.production.steps import Setting, Step


@dataclass(frozen=True)
class Call:
    """The shared options of one call."""

    output: Path | None
    round_name: str | None
    made_at: int
    as_json: bool
    page: Path | None = None
    """Where the status page of a readiness goes, if anywhere."""
    engine: Engine | None = None
    """Who reads a query log, where it is not this machine's own processes."""

    def run(
        self, stage: str, files: Mapping[str, Any], direct: Callable[[Setting, Path], Step], *, log: Path | None = None
    ) -> None:
        """Run a stage, on its files or in its round, print what came of it, and leave with its exit code.

        Args:
            files: by option, what the call must give when it names no round.
            direct: the stage on those files, given the setting and the results' folder.
            log: the query log that the stage reads, for the progress bar.
        """
        if self.round_name is not None:
            self.run_in_round(stage, files)
            return
        missing = [option for option, value in {**files, "--output": self.output}.items() if value is None]
        if missing or self.output is None:
            raise click.UsageError(f"missing {', '.join(missing)}; or name a round with --round NAME")
        with progress(log) if log else nullcontext() as on_rows:
            step = direct(Setting(self.made_at, on_rows=on_rows, engine=self.engine), self.output)
        self.tell(step)

    def tell(self, step: Step) -> None:
        """Write what a step made where the call says, print it, and leave with its exit code."""
        written: list[Readable] = []
        if self.output is not None:
            written.append(write_document(self.output / f"{step.artifact['artifact']}.json", step.artifact))
            written += [write_document(self.output / name, paper) for name, paper in step.papers.items()]
        if self.page is not None:
            written.append(write_bytes(self.page, readiness_page.page(step.artifact)))
        self._finish(step.artifact, written, reused=False)

    def run_in_round(self, stage: str, files: Mapping[str, Any], *, release: Path | None = None) -> None:
        if self.output is not None or any(value is not None for value in files.values()):
            raise click.UsageError("--round takes everything from the round's folder: leave files and --output out")
        round_ = round_named(self.round_name or "")
        due = stages.stage_named(stage)
        if release is not None:
            due = replace(due, run=lambda round_, setting: stages.judge_release(round_, setting, release))
        reads_log = "query_log" in due.inbox
        with progress(round_.inbox_file("query_log")) if reads_log else nullcontext() as on_rows:
            setting = Setting(self.made_at, self.round_name, on_rows=on_rows, engine=self.engine)
            kept = stages.advance(round_, due, setting)
        catalogue.evidence_store(evidence_folder()).load(kept.artifact, catalogue.tables_of(kept.artifact))
        written = [kept.path, *kept.papers]
        if self.page is not None:
            written.append(write_bytes(self.page, readiness_page.page(kept.artifact)))
        self._finish(kept.artifact, written, reused=kept.reused)

    def _finish(self, artifact: Artifact, files: Sequence[Readable], *, reused: bool) -> None:
        step = guidance.next_step(artifact)
        report(artifact, files, next_step=step, as_json=self.as_json, reused=reused)
        click.get_current_context().exit(exit_code(artifact))


@click.group()
def command() -> None:
    """The production lane: from a consented query log to a verdict.

    Before any round: collection-readiness. Stages in order: attest, export, prepare, freeze, run-kit, assemble,
    evaluate; and readiness, which judges a release by a round's verdict. Between them people attest, label,
    run and review. A stage that is blocked names every rule that is broken, and writes its status and nothing else.
    """


@command.command()
@options.file("--input", "The query log: a JSON array or JSON Lines, plain or gzip.")
@options.engine
@options.shared("--as-of")
def attest(input: Path | None, engine: str | None, spark_master: str | None, **shared: Any) -> None:  # noqa: A002 - the option's name is the contract's
    """Tell what a query log amounts to: one outcome a row, counts, and a blank attestation.

    Nothing of what is in the log is kept: no question, id, instant or contact.
    """
    call = Call(**shared, engine=log_engine(engine, spark_master))
    call.run(
        "log_attestation",
        {"--input": input},
        lambda setting, output: steps.attest_log(_due(input), setting, private=output / "private"),
        log=input,
    )


@command.command()
@options.file("--input", "The query log that was attested.")
@options.file("--attestation", "The operator's completed attestation of this log.")
@options.file("--pseudonym-key", "A 32-byte key of your own; by default one is made in the results' private folder.")
@options.engine
@options.shared("--as-of")
def export(
    input: Path | None,  # noqa: A002
    attestation: Path | None,
    pseudonym_key: Path | None,
    engine: str | None,
    spark_master: str | None,
    **shared: Any,
) -> None:
    """Export the eligible questions under pseudonyms, with a public receipt of counts and digests.

    Writes no question at all unless enough eligible ones remain and the attestation holds. The export is private.
    """

    def direct(setting: Setting, output: Path) -> Step:
        key_file = pseudonym_key or output / "private" / steps.KEY_NAME
        key = steps.pseudonym_key(key_file, make=pseudonym_key is None)
        private = output / "private"
        return steps.export_questions(
            _due(input),
            _due(attestation),
            setting,
            key=key,
            export_file=lambda _receipt: private / "question-export.json",
            private=private,
        )

    call = Call(**shared, engine=log_engine(engine, spark_master))
    call.run("question_export", {"--input": input, "--attestation": attestation}, direct, log=input)


@command.command()
@options.file("--input", "The private question export.")
@options.shared("--prepared-at")
def prepare(input: Path | None, **shared: Any) -> None:  # noqa: A002
    """Prepare blank labels: question digests and nothing to read."""
    call = Call(**shared)
    call.run("prepared_manifest", {"--input": input}, lambda setting, _: steps.prepare_manifest(_due(input), setting))


@command.command()
@options.file("--input", "The labeller's completed and approved manifest.")
@options.file("--prepared", "The prepared-manifest artifact that it was made from.")
@options.shared("--evaluated-at")
def freeze(input: Path | None, prepared: Path | None, **shared: Any) -> None:  # noqa: A002
    """Freeze the labels, before any trace exists."""
    call = Call(**shared)
    call.run(
        "frozen_labels",
        {"--input": input, "--prepared": prepared},
        lambda setting, _: steps.freeze_labels(_due(input), _due(prepared), setting),
    )


@command.command("run-kit")
@options.file("--manifest", "The frozen-labels artifact.")
@click.option("--operator", metavar="CODE", help="The run operator's pseudonym, such as OPS-7Q2K; not the approver's.")
@click.option("--overlap", type=click.IntRange(min=0), metavar="N", help="Cases that both review lanes get.")
@options.shared("--prepared-at")
def run_kit(manifest: Path | None, operator: str | None, overlap: int | None, **shared: Any) -> None:
    """Make blank worksheets for the run and for two balanced review lanes. Runs no model."""
    document = {"version": 1, "operatorCode": operator, "overlap": overlap or 0}
    call = Call(**shared)
    call.run(
        "run_kit",
        {"--manifest": manifest, "--operator": operator},
        lambda setting, _: steps.prepare_run_kit(_due(manifest), document, setting),
    )


@command.command()
@options.file("--manifest", "The frozen-labels artifact.")
@options.file("--observations", "The completed observation worksheet.")
@options.file("--reviews", "The completed reviews of both lanes, in one document.")
@options.file("--release-manifest", "The manifest of the release that was measured.")
@click.option("--evidence-source", metavar="URL", help="Where the run's own evidence is kept: a public https URL.")
@click.option("--evidence-sha256", metavar="SHA256", help="The receipt of that evidence.")
@click.option("--operator", metavar="CODE", help="The run operator's pseudonym.")
@options.file("--kit", "The run-kit artifact; its lanes then say how many reviews each case must have. [optional]")
@options.shared("--evaluated-at")
def assemble(
    manifest: Path | None,
    observations: Path | None,
    reviews: Path | None,
    release_manifest: Path | None,
    evidence_source: str | None,
    evidence_sha256: str | None,
    operator: str | None,
    kit: Path | None,
    **shared: Any,
) -> None:
    """Join labels, observations, reviews and release into one bundle, and check every rule of it."""

    def direct(setting: Setting, _: Path) -> Step:
        files = steps.BundleFiles(_due(observations), _due(reviews), _due(release_manifest), _due(manifest), kit)
        reference = {"version": 1, "evidenceUrl": evidence_source, "receiptSha256": evidence_sha256}
        return steps.assemble_bundle(
            files, setting, evidence_reference=reference, reference_receipt=None, operator_code=operator or ""
        )

    due = {
        "--manifest": manifest,
        "--observations": observations,
        "--reviews": reviews,
        "--release-manifest": release_manifest,
        "--evidence-source": evidence_source,
        "--evidence-sha256": evidence_sha256,
        "--operator": operator,
    }
    call = Call(**shared)
    if call.round_name is not None and kit is not None:
        raise click.UsageError("--round takes the round's own run kit: leave --kit out")
    call.run("assembled_bundle", due, direct)


@command.command()
@options.file("--manifest", "The frozen-labels artifact.")
@options.file("--bundle", "The assembled-bundle artifact.")
@options.shared("--evaluated-at")
def evaluate(manifest: Path | None, bundle: Path | None, **shared: Any) -> None:
    """Recompute every metric from rows, and judge it against the policy."""
    call = Call(**shared)
    call.run(
        "production_metrics",
        {"--manifest": manifest, "--bundle": bundle},
        lambda setting, _: steps.evaluate_bundle(_due(manifest), _due(bundle), setting),
    )


@command.command("collection-readiness")
@options.file("--approval", "The completed approval of the collection contract.")
@click.option(
    "--switch", type=click.Choice(["on", "off"]), default="off", show_default=True, help="The runtime switch."
)
@options.output
@options.clock("--as-of")
@options.as_json
def collection_readiness(approval: Path | None, switch: str, output: Path | None, made_at: int, as_json: bool) -> None:
    """Tell whether a person approved the collection contract, and leave a blank approval where nobody did.

    Comes before any round, for nothing is collected yet. Deploys nothing, enables nothing.
    """
    call = Call(output, None, made_at, as_json)
    call.tell(readiness_steps.judge_collection(approval, Setting(made_at), switch=switch == "on"))


@command.command()
@options.file("--metrics", "The production-metrics artifact.")
@options.file("--release-manifest", "The manifest of the release at hand.")
@click.option("--release", type=options.FOLDER, metavar="DIR", help="The release itself, to compare file by file.")
@click.option("--html", type=options.FILE, metavar="FILE", help="Write a status page: each requirement, what to do.")
@options.shared("--as-of")
def readiness(
    metrics: Path | None, release_manifest: Path | None, release: Path | None, html: Path | None, **shared: Any
) -> None:
    """Tell whether a release is ready: a passed production verdict of this very release, fresh today.

    A rehearsal, a golden gate, and a failed, blocked or edited verdict are refused by name. Authorises no publication,
    contact, payment or model run.

    Without --metrics, the verdict is the newest one of any round that says it measured this release.
    """
    call = Call(**shared, page=html)
    if call.round_name is not None:
        call.run_in_round("readiness", {"--metrics": metrics, "--release-manifest": release_manifest}, release=release)
    if release_manifest is None:
        raise click.UsageError("missing --release-manifest; or name a round with --round NAME")
    verdict = metrics or stages.verdict_of(artifact_root(), release_manifest)
    call.tell(readiness_steps.judge_release(verdict, release_manifest, Setting(call.made_at), release_folder=release))


def _due(value: Path | None) -> Path:
    """An option that `Call.run` has seen to be there."""
    if value is None:
        raise click.UsageError("an input file is missing")
    return value
