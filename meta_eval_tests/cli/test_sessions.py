"""The sessions commands as a person uses them, and the guide, whose commands print what it shows.

`META_EVAL_WRITE_DOCS=1 pytest meta_eval_tests/cli/test_sessions.py` writes the guide's blocks anew; review the diff.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from meta_eval.cli.main import cli
from meta_eval.evidence.errors import MetaEvalError

PROJECT = Path(__file__).resolve().parents[2]
GUIDE = PROJECT / "docs" / "sessions-guide.md"
DEMO = PROJECT / "data" / "sessions-demo"
CLOCK = ("--timestamp", "2026-08-20T12:00:00.000Z")
RUN = "demo-red-gates-eval-20260820T120000000Z"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
EXIT = re.compile(r"\s+# exit (\d)$")


@dataclass
class Desk:
    """A fresh home and a working folder in which commands are run."""

    home: Path

    def run(self, *words: str, expect: int = 0) -> str:
        """What `meta-eval` prints, after its exit code was seen to be the expected one."""
        result = CliRunner().invoke(cli, list(words), env={"META_EVAL_HOME": str(self.home)})
        output, code = result.output, result.exit_code
        if isinstance(result.exception, MetaEvalError):  # what `main` does with an error of ours
            output, code = f"{output}meta-eval: {result.exception}\n", result.exception.exit_code
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code == expect, output
        return output.replace(str(self.home), "data")

    def json(self, *words: str, expect: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", expect=expect))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    home = tmp_path / "data"
    shutil.copytree(DEMO, home / "sessions-demo")
    shutil.copytree(DEMO, home / "ledgers" / "demo")
    monkeypatch.chdir(tmp_path)
    return Desk(home)


def commands(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def output(desk: Desk, command: str) -> str:
    expected = EXIT.search(command)
    words = shlex.split(EXIT.sub("", command))
    assert words[0] == "meta-eval"
    return desk.run(*words[1:], expect=int(expected[1]) if expected else 0)


def test_every_command_of_the_guide_prints_what_is_shown(desk: Desk) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    for block in blocks:
        made = [(command, output(desk, command), shown) for command, shown in commands(block)]
        if os.environ.get("META_EVAL_WRITE_DOCS"):
            anew = "".join(f"$ {command}\n{printed}" for command, printed, _ in made)
            text = text.replace(f"```console\n{block}```", f"```console\n{anew}```")
        else:
            for command, printed, shown in made:
                assert printed.strip() == shown.strip(), command
    if os.environ.get("META_EVAL_WRITE_DOCS"):
        GUIDE.write_text(text, encoding="utf-8")
    named = {word for block in blocks for command, _ in commands(block) for word in command.split()}
    assert {"score", "verify", "report", "trend", "submission", "request", "merge", "calibrate"} <= named


def test_the_guides_table_of_verdicts_is_what_the_demo_gives(desk: Desk) -> None:
    rows = re.findall(r"^\| (demo-\S+) \| (.+) \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 9
    seen: dict[str, set[str]] = {}
    for session, cells in rows:
        for rubric in ("v1", "v2"):
            made = desk.json(
                "sessions", "score", "--ledger", "demo", "--session", session, "--rubric", rubric, "--no-write"
            )
            found = {each["id"]: each["status"] for each in made["record"]["dimensions"]}
            for name, cell in zip(
                ("verification-evidence", "plan-fidelity", "gate-health", "process-safety"),
                cells.split(" | "),
                strict=True,
            ):
                shown = re.findall(rf"(\S+) in {rubric}", cell) or [cell]
                assert found[name] == shown[0], (session, name, rubric)
                seen.setdefault(name, set()).add(found[name])
    four = {"pass", "fail", "not-applicable", "cannot-determine"}
    assert seen == dict.fromkeys(("verification-evidence", "plan-fidelity", "gate-health"), four) | {
        "process-safety": four - {"not-applicable"}
    }


def test_score_appends_once_and_verify_tells_match_from_drift(desk: Desk) -> None:
    folder = desk.home / "ledgers" / "demo"
    assert desk.json("sessions", "score", "--ledger", "demo", "--session", "demo-red-gates", *CLOCK)["written"] == 1
    assert desk.json("sessions", "score", "--ledger", "demo", "--session", "demo-red-gates", *CLOCK)["written"] == 0
    assert desk.json("sessions", "verify", RUN, "--ledger", "demo")["records"][0]["verified"] is True
    journal = folder / "eval.jsonl"
    journal.write_text(
        journal.read_text(encoding="utf-8").replace('"status":"fail"', '"status":"pass"', 1), encoding="utf-8"
    )
    (record,) = desk.json("sessions", "verify", RUN, "--ledger", "demo", expect=1)["records"]
    assert [(each["field"], each["stored"], each["fresh"]) for each in record["differences"]] == [
        ("status", "pass", "fail")
    ]
    assert "DRIFT" in desk.run("sessions", "verify", RUN, "--ledger", "demo", expect=1)


def test_all_writes_journal_artifact_and_rows_that_verify(desk: Desk) -> None:
    made = desk.json("sessions", "score", "--ledger", "demo", "--all", *CLOCK)
    assert (made["sessions"], made["written"], made["refused"]) == (10, 10, [])
    (artifact,) = (desk.home / "ledgers" / "demo" / "artifacts" / "scored-sessions").glob("*.json")
    assert "1 verified, 0 refused" in desk.run("verify", str(artifact))
    assert desk.json("sessions", "score", "--ledger", "demo", "--all", *CLOCK)["written"] == 0
    told = desk.run("query", "SELECT count(*) AS n FROM session_dimensions")
    assert "60" in told


def test_one_absurd_record_withholds_no_other(desk: Desk) -> None:
    with (desk.home / "ledgers" / "demo" / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"session_id":"minus","status":"completed","total_waves":-1}\n')
    made = desk.json("sessions", "score", "--ledger", "demo", "--all", *CLOCK, expect=1)
    assert (made["written"], made["refused"]) == (10, [{"line": 12, "field": "kpis.total_waves"}])
    desk.run("sessions", "score", "--ledger", "demo", "--session", "minus", *CLOCK, expect=1)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("score", "--session", "nobody"), 1, "no record of session"),
        (("score", "--session", "demo-abandoned"), 1, "was abandoned"),
        (("score", "--session", "demo-blocked", "--all"), 2, "not both"),
        (("score", "--metrics-dir", "x"), 2, "not both"),
        (("score", "--rubric", "v9"), 2, "Invalid value"),
        (("score", "--timestamp", "yesterday"), 2, "not an instant"),
        (("score", "--hostname-hash", "my-host"), 1, "harness.hostname_hash"),
        (("verify", "no-such-run"), 2, "no record of this run id"),
        (("report", "no-such-run"), 2, "no record of this run id"),
        (("judge", "request"), 2, "RUN-ID"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    desk: Desk, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in desk.run(
        "sessions", *words, *(() if "--metrics-dir" in words[:1] else ("--ledger", "demo")), expect=code
    )


def test_a_session_ledger_that_cannot_be_read_is_named_without_a_traceback(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    (folder / "sessions.jsonl").mkdir(parents=True)
    assert "sessions.jsonl" in desk.run("sessions", "score", "--metrics-dir", str(folder), expect=2)
    assert "there is no sessions.jsonl" in desk.run(
        "sessions", "score", "--metrics-dir", str(tmp_path / "none"), expect=1
    )


def test_the_only_ledger_need_not_be_named(desk: Desk) -> None:
    assert desk.json("sessions", "score", "--no-write")["record"]["session_id"] == "demo-no-end"
    shutil.copytree(DEMO, desk.home / "ledgers" / "other")
    assert "--ledger NAME" in desk.run("sessions", "score", expect=2)


def test_a_report_is_the_same_bytes_again_and_a_hostile_run_id_makes_a_harmless_file_name(desk: Desk) -> None:
    with (desk.home / "ledgers" / "demo" / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"session_id":"../../evil","status":"completed"}\n')
    made = desk.json("sessions", "score", "--ledger", "demo", "--session", "../../evil", *CLOCK)
    first = desk.run("sessions", "report", made["record"]["run_id"], "--ledger", "demo")
    assert first == desk.run("sessions", "report", made["record"]["run_id"], "--ledger", "demo")
    assert first.startswith("data/ledgers/demo/reports/_.._evil") or "/reports/" in first
    assert [path.parent.name for path in desk.home.rglob("*.html")] == ["reports"]


def test_two_rubrics_of_one_run_id_are_told_apart(desk: Desk) -> None:
    for rubric in ("v1", "v2"):
        desk.run("sessions", "score", "--ledger", "demo", "--session", "demo-red-gates", "--rubric", rubric, *CLOCK)
    assert "several rubrics" in desk.run("sessions", "submission", RUN, "--ledger", "demo", expect=2)
    sent = json.loads(desk.run("sessions", "submission", RUN, "--ledger", "demo", "--rubric", "v1"))
    assert sent["rubric_version"] == "rubric-v1"
    assert len(desk.json("sessions", "verify", RUN, "--ledger", "demo")["records"]) == 2


def test_a_reply_without_an_opinion_appends_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.run("sessions", "score", "--ledger", "demo", "--session", "demo-red-gates", *CLOCK)
    reply = tmp_path / "reply.txt"
    reply.write_text("I would rather not say.", encoding="utf-8")
    desk.run("sessions", "judge", "merge", RUN, "--ledger", "demo", "--reply", str(reply), expect=1)
    assert desk.json("sessions", "trend", "--ledger", "demo")["records"] == 1


@pytest.mark.parametrize(
    "words", [(), *((name,) for name in ("score", "verify", "report", "trend", "submission", "judge"))]
)
def test_help_tells_a_stranger_what_a_command_does(desk: Desk, words: tuple[str, ...]) -> None:
    told = desk.run("sessions", *words, "--help")
    assert len(told.split()) > 25
