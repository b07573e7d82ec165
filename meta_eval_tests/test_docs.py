"""Documents cannot rot: every command that they show is run, and its output must be what they show.

A block fenced as `console` holds commands after `$ `, run in order in one fresh home, which they call `data`;
`# exit N` states the exit code. Seconds, key ids, digests of golden runs and the home's path are not compared. The
analyst's guide is asked question by question. `META_EVAL_WRITE_DOCS=1` writes what is shown anew.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("dagster")
PROJECT = Path(__file__).resolve().parents[1]
# In this order at one desk: what README's commands made is what the others speak of.
DOCUMENTS = [
    "README.md",
    "docs/audit-a-round.md",
    "docs/run-a-round.md",
    "docs/release-readiness.md",
    "docs/golden-gate.md",
]
DEMO = "meta-eval rehearse --round demo --as-of 2026-11-30T12:00:00.000Z"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
EXIT = re.compile(r"\s+# exit (\d)$")


class Desk:
    """A fresh home in which a document's commands are run."""

    def __init__(self, folder: Path) -> None:
        self.home, self.dagster_home = folder / "data", folder / "dagster"
        self.dagster_home.mkdir(parents=True)
        shutil.copy(PROJECT / ".dagster_home" / "dagster.yaml", self.dagster_home)

    def output(self, command: str) -> str:
        """What a documented command prints, after its exit code was seen to be the documented one."""
        expected = EXIT.search(command)
        words = shlex.split(EXIT.sub("", command))
        assert words[0] == "meta-eval", command
        return self.run(*words[1:], expect=int(expected[1]) if expected else 0)

    def run(self, *words: str, expect: int = 0) -> str:
        """What `meta-eval` prints, the home's path replaced by `data`."""
        env = os.environ | {"META_EVAL_HOME": str(self.home), "DAGSTER_HOME": str(self.dagster_home)}
        program = str(Path(sys.executable).with_name("meta-eval"))
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, env=env, cwd=self.home.parent, check=False
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return (done.stdout + done.stderr).replace(str(self.home), "data")


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with the output that is shown under it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def comparable(text: str) -> str:
    text = re.sub(r"(keyId +)[0-9a-f]{64}", r"\1K", re.sub(r" *\d+\.\d s\b", " N s", text))
    return re.sub(r"(golden-\w+)-[0-9a-f]{12}", r"\1-N", text).strip()  # it holds latencies


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documented_commands_print_what_is_shown(name: str, desk: Desk) -> None:
    path = PROJECT / name
    if name != "README.md":
        _have_demo(desk)
    text = path.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert blocks
    for block in blocks:
        made = [(command, desk.output(command), shown) for command, shown in commands(block)]
        if os.environ.get("META_EVAL_WRITE_DOCS"):
            anew = "".join(f"$ {command}\n{output}" for command, output, _ in made)
            text = text.replace(f"```console\n{block}```", f"```console\n{anew}```")
            continue
        for command, output, shown in made:
            assert comparable(output) == comparable(shown), command
    if os.environ.get("META_EVAL_WRITE_DOCS"):
        path.write_text(text, encoding="utf-8")


QUESTION = re.compile(r"```sql\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def test_every_question_of_the_guide_has_the_answer_that_is_shown(desk: Desk) -> None:
    path = PROJECT / "docs/analyst-guide.md"
    _have_demo(desk)
    text = path.read_text(encoding="utf-8")
    questions = QUESTION.findall(text)
    assert len(questions) >= 10
    if os.environ.get("META_EVAL_WRITE_DOCS"):
        path.write_text(QUESTION.sub(lambda found: _answered(desk, found[1]), text), encoding="utf-8")
        return
    for sql, shown in questions:
        assert desk.run("query", sql) == shown, sql


def _have_demo(desk: Desk) -> None:
    """README's round, where this test alone was asked for."""
    if not (desk.home / "rounds" / "demo").exists():
        desk.output(DEMO)


def _answered(desk: Desk, sql: str) -> str:
    return f"```sql\n{sql}```\n\n```text\n{desk.run('query', sql)}```\n"


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    documents = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")]
    named = {name for path in documents for name in re.findall(r"`make ([a-z]+)`", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= targets


def test_every_file_that_a_document_links_to_exists() -> None:
    documents = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")]
    for path in documents:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_command_is_documented() -> None:
    from meta_eval.cli.main import _COMMANDS
    from meta_eval.cli.production import command as production

    text = "\n".join(path.read_text(encoding="utf-8") for path in PROJECT.glob("*.md"))
    text += "\n".join(path.read_text(encoding="utf-8") for path in (PROJECT / "docs").glob("*.md"))
    for name in [*_COMMANDS, *production.commands]:
        assert re.search(rf"\b{name}\b", text), f"no document names the command {name}"
