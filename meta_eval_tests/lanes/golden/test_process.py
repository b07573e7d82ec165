"""An answerer that misbehaves costs its prompt and no other: every prompt comes out as something, and the run ends."""

from __future__ import annotations

import shlex
import sys
import textwrap
import time
from pathlib import Path

import pytest

from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.golden.process import Limits, ask_command
from meta_eval.lanes.golden.prompts import Prompt

PROMPTS = [Prompt(f"p-{n}", "answerable", f"Question {n}?", ("a.maker",)) for n in range(4)]
QUICK = Limits(prompt_s=5, total_s=60)
GOOD = """
import json, sys, os, time, signal
REFUSED = {"refused": True, "claims": [], "latencyMs": 1}
def say(value=REFUSED, **more):
    print(json.dumps(value | more) if isinstance(value, dict) else value, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    n = int(asked["question"].split()[1].rstrip("?"))
"""


def command(tmp_path: Path, body: str) -> str:
    """A command that answers each question as `body` says; `n` is the question's number."""
    script = tmp_path / "answerer.py"
    script.write_text(GOOD + textwrap.indent(textwrap.dedent(body), "    "))
    return shlex.join([sys.executable, str(script)])


def outcomes(tmp_path: Path, body: str, limits: Limits = QUICK) -> list[str]:
    return [each.fault or each.outcome for each in ask_command(command(tmp_path, body), PROMPTS, limits)]


def test_one_that_behaves(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "say()") == ["refused"] * 4
    assert outcomes(tmp_path, "say(promptId=asked['promptId'])") == ["refused"] * 4


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("say('garbage') if n == 1 else say()", ["refused", "not-json", "refused", "refused"]),
        ("os._exit(3) if n == 1 else say()", ["refused", "ended", "refused", "refused"]),
        ("os.kill(os.getpid(), signal.SIGSEGV) if n == 2 else say()", ["refused", "refused", "ended", "refused"]),
        ("raise SystemExit(0)", ["ended"] * 4),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()", ["not-json"] * 4),
        ("print(' ', flush=True); say()", ["refused"] * 4),  # a blank line is nothing
        ("print('loading', file=sys.stderr, flush=True); say()", ["refused"] * 4),
        ("say('x' * 3_000_000) if n == 0 else say()", ["answer-too-long", "refused", "refused", "refused"]),
        ("print(json.dumps(REFUSED), end='', flush=True); os._exit(0)", ["refused"] * 4),  # the last line needs no end
    ],
)
def test_a_fault_is_the_prompts_own(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert outcomes(tmp_path, body) == expected


def test_one_that_hangs_is_killed_with_whatever_it_started(tmp_path: Path) -> None:
    body = f"""
        if n == 1:
            import subprocess
            subprocess.Popen([sys.executable, "-c", "import time, pathlib; time.sleep(2);"
                              "pathlib.Path({str(tmp_path / "outlived")!r}).touch()"])
            time.sleep(60)
        say()
    """
    started = time.monotonic()
    assert outcomes(tmp_path, body, Limits(1.0, 60)) == ["refused", "timed-out", "refused", "refused"]
    assert time.monotonic() - started < 20
    time.sleep(2.5)
    assert not (tmp_path / "outlived").exists()


def test_a_run_that_takes_too_long_leaves_no_prompt_out(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "time.sleep(60)", Limits(0.6, 1.0))
    assert found[0] == "timed-out"
    assert found[-1] == "not-asked-in-time"
    assert len(found) == 4
    assert set(found) == {"timed-out", "not-asked-in-time"}


def test_answers_out_of_order_are_known_where_they_name_their_prompt(tmp_path: Path) -> None:
    swapped = "say(promptId='p-2' if n == 1 else 'p-1' if n == 2 else asked['promptId'])"
    assert outcomes(tmp_path, swapped) == ["refused", "out-of-order", "out-of-order", "refused"]


@pytest.mark.parametrize("late", ["", "time.sleep(0.3);"])
def test_one_that_answers_twice_and_names_the_prompt_loses_that_prompt(tmp_path: Path, late: str) -> None:
    body = f"""
        say(promptId=asked['promptId'])
        if n == 1:
            {late or "pass"}
            say(promptId=asked['promptId'])
    """
    found = outcomes(tmp_path, body)
    assert found[1] == "answered-twice"
    assert found[0] == found[3] == "refused"
    # A second answer that comes late is read where the next one's is due, and that prompt has had its turn.
    assert found[2] in ("refused", "out-of-order")


def test_without_names_a_surplus_answer_makes_every_answer_doubtful(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "say(); say() if n == 3 else None") == ["out-of-step"] * 3 + ["answered-twice"]
    found = outcomes(tmp_path, "say(); (time.sleep(0.3), say()) if n == 1 else None")
    assert "refused" not in found[:2]
    assert set(found) <= {"out-of-step", "answered-twice", "refused"}


@pytest.mark.parametrize("answerer", ["", "   ", "'unclosed", "/no/such/command", "no-such-command-anywhere --x"])
def test_a_command_that_cannot_be_started_is_an_error_of_the_call(answerer: str) -> None:
    with pytest.raises(UsageError):
        ask_command(answerer, PROMPTS, QUICK)


def test_a_command_that_goes_away_during_the_run_loses_the_prompts_that_are_left(tmp_path: Path) -> None:
    line = command(tmp_path, "os.remove(sys.argv[0]) if n == 1 else None; os._exit(0) if n == 1 else say()")
    assert [each.fault or each.outcome for each in ask_command(line, PROMPTS, QUICK)][:2] == ["refused", "ended"]
    script = tmp_path / "itself"
    script.write_text(
        f"#!{sys.executable}\n{GOOD}    os.remove(sys.argv[0]) if n == 1 else say()\n    os._exit(0) if n == 1 else 0\n"
    )
    script.chmod(0o755)
    found = [each.fault or each.outcome for each in ask_command(str(script), PROMPTS, QUICK)]
    assert found == ["refused", "ended", "ended", "ended"]


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    script = tmp_path / "answerer.py"
    script.write_text(GOOD + "    say(refused=len(sys.argv) != 3)\n")
    found = ask_command(f"{sys.executable} {script} $(touch {tmp_path}/made) ; rm -rf /", PROMPTS[:1], QUICK)
    assert found[0].outcome == "refused"
    assert not (tmp_path / "made").exists()
