"""A golden run from files to verdict: read records, prompts and baseline, ask the answerer, judge.

Asking is the one thing here that takes a command or a clock; the verdict itself is `gate.judge`, which knows neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import file_receipt, read_document, receipt
from meta_eval.evidence.documents import read
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.golden import gate
from meta_eval.lanes.golden.answerer import BuiltInAnswerer
from meta_eval.lanes.golden.process import Limits, ask_command
from meta_eval.lanes.golden.prompts import Prompt, read_prompts
from meta_eval.lanes.golden.protocol import Given, answer_of
from meta_eval.lanes.golden.seed_records import SeedRecord, read_records, records_digest

BUILT_IN = "builtin"
FOLDER = Path(__file__).resolve().parents[3] / "data" / "golden"
"""The project's own golden set; beside the package where it is installed."""
RECORDS, PROMPTS, BASELINE = (FOLDER / name for name in ("records.jsonl", "prompts.json", "baseline.json"))


@dataclass(frozen=True)
class Files:
    """What a run is made from. Without a baseline, the expectation is the baseline."""

    records: Path
    prompts: Path
    baseline: Path | None


@dataclass(frozen=True)
class Run:
    """A verdict, with the prompts that were asked, whose words no artifact keeps."""

    artifact: Artifact
    prompts: list[Prompt]


def run(
    files: Files,
    answerer: str,
    *,
    made_at: int,
    limits: Limits | None = None,
    on_prompt: Callable[[], None] = lambda: None,
) -> Run:
    """Ask an answerer every prompt and judge what it says.

    Args:
        answerer: `builtin`, or a command line, which is started without a shell.
        on_prompt: called after each prompt.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the command cannot be started.
    """
    records = read_records(files.records)
    document, _ = read_document(files.prompts)
    made_for, prompts = read_prompts(document, str(files.prompts))
    baseline = None if files.baseline is None else read_baseline(files.baseline)
    asked = gate.Asked([prompt.kept for prompt in prompts], records_digest(records), made_for)
    answers: list[dict[str, Any]] = []
    if not gate.preflight(asked, baseline):
        given = _asked(answerer, records, prompts, limits or Limits(), on_prompt)
        answers = [gate.answer_row(prompt.prompt_id, each) for prompt, each in zip(prompts, given, strict=True)]
    paths = {"records": files.records, "prompts": files.prompts} | (
        {"baseline": files.baseline} if files.baseline else {}
    )
    artifact = gate.judge(
        asked,
        answers,
        baseline,
        answerer_sha256=receipt(answerer.encode()),
        receipts={name: file_receipt(path) for name, path in paths.items()},
        made_at=made_at,
    )
    return Run(artifact, prompts)


def _asked(
    answerer: str, records: list[SeedRecord], prompts: list[Prompt], limits: Limits, on_prompt: Callable[[], None]
) -> list[Given]:
    if answerer != BUILT_IN:
        return ask_command(answerer, prompts, limits, on_prompt)
    built_in, given = BuiltInAnswerer(records), []
    for prompt in prompts:
        given.append(answer_of(built_in.answer(prompt.question), prompt.prompt_id))
        on_prompt()
    return given


def read_baseline(path: Path) -> dict[str, Any]:
    """A frozen run. Raises InputError where the file is none."""
    document, _ = read_document(path)
    reading = read(document, gate.BASELINE, subject="baseline")
    if reading.blockers:
        first = reading.blockers[0]
        raise InputError(str(path), f"{first.code} at {first.subject}", next_step="freeze a run with --write-baseline")
    return dict(reading.value)
