"""The terminal, as a person uses it: a whole round by files, exit codes, refusals in one line, privacy of files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import stat
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from meta_eval.cli.main import main
from meta_eval.evidence.artifacts import digest_of
from meta_eval.evidence.chronology import DAY_MS, instant_ms, written_instant
from meta_eval.lanes.production.rehearsal import invented_log, people
from meta_eval.lanes.production.rehearsal.people import SLIPS, Timeline
from meta_eval_tests.valid_world import sha

VERDICT = 1_796_000_000_000
TIMES = Timeline(VERDICT)


@dataclass(frozen=True)
class Done:
    """What a call printed."""

    stdout: str
    stderr: str


def call(*words: str | Path, home: Path | None = None, expect: int = 0) -> Done:
    """Call `meta-eval` in this process, through its real entry point, and demand an exit code."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["meta-eval", *map(str, words)])
        patch.setenv("META_EVAL_HOME", str(home or "/nonexistent"))
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code
    assert code == expect, out.getvalue() + err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def at(ms: int) -> tuple[str, str]:
    return "--as-of", written_instant(ms)


def put(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole round done with files and options alone, as the operator of the source document would."""
    desk = tmp_path_factory.mktemp("desk")
    out = desk / "out"
    log = desk / "ai-query-log.json"
    log.write_bytes(invented_log.log_bytes(invented_log.invented_rows(seed=3, now=TIMES.log_read, rows=600)))
    call("production", "attest", "--input", log, "--output", out, *at(TIMES.log_read))
    attestation = put(desk / "a.json", people.attestation(document(out / "attestation-template.json"), TIMES))
    exported = ("--input", log, "--attestation", attestation, "--output", out)
    call("production", "export", *exported, *at(TIMES.after_log(1)))
    export = out / "private" / "question-export.json"
    call("production", "prepare", "--input", export, "--output", out, *at(TIMES.after_log(2)))
    labels = people.labels(document(out / "labels-worksheet.json"), document(export), {}, TIMES)
    labelled = ("--input", put(desk / "labels.json", labels), "--prepared", out / "prepared-manifest.json")
    call("production", "freeze", *labelled, "--output", out, *at(TIMES.after_log(5)))
    kit = ("--manifest", out / "frozen-labels.json", "--operator", people.OPERATOR, "--overlap", "20")
    call("production", "run-kit", *kit, "--output", out, *at(TIMES.after_log(6)))
    observed = people.observations(document(out / "observation-worksheet.json"), labels, TIMES, SLIPS)
    worksheets = {lane: document(out / f"review-worksheet-{lane.lower()}.json") for lane in "AB"}
    put(desk / "observations.json", observed)
    put(desk / "reviews.json", people.reviews(worksheets, observed, TIMES, SLIPS))
    put(desk / "release.json", people.release_manifest())
    call("production", "assemble", *assembly(desk), "--output", out, *at(VERDICT))
    return desk


def assembly(desk: Path) -> tuple[str | Path, ...]:
    out = desk / "out"
    return (
        *("--manifest", out / "frozen-labels.json", "--kit", out / "run-kit.json"),
        *("--observations", desk / "observations.json", "--reviews", desk / "reviews.json"),
        *("--release-manifest", desk / "release.json", "--operator", people.OPERATOR),
        *("--evidence-source", f"{people.HOST}/runs/1", "--evidence-sha256", sha("run")),
    )


def evaluation(desk: Path) -> tuple[str | Path, ...]:
    return "--manifest", desk / "out" / "frozen-labels.json", "--bundle", desk / "out" / "assembled-bundle.json"


def test_a_round_by_files_ends_rehearsed_and_verifies(desk: Path, tmp_path: Path) -> None:
    done = call("production", "evaluate", *evaluation(desk), "--output", tmp_path, *at(VERDICT))
    assert "production-metrics: rehearsed" in done.stdout
    assert "precision" in done.stdout
    verified = call("verify", desk / "out")
    assert verified.stdout.endswith("6 verified, 0 refused\n")


def test_json_output_is_one_object_with_digest_blockers_files_and_next_step(desk: Path, tmp_path: Path) -> None:
    done = call("production", "evaluate", *evaluation(desk), "--output", tmp_path, "--json", *at(VERDICT))
    told = json.loads(done.stdout)
    assert told["status"] == "rehearsed"
    assert told["blockers"] == []
    assert told["result"]["metrics"]["precision"]["threshold"] == "9/10"
    assert told["files"] == [str(tmp_path / "production-metrics.json")]
    assert told["nextStep"]
    assert told["digest"] == document(tmp_path / "production-metrics.json")["digest"]


def test_traces_35_days_old_are_fresh_and_a_millisecond_later_the_verdict_is_blocked(
    desk: Path, tmp_path: Path
) -> None:
    rows = document(desk / "observations.json")["observations"]
    oldest = min(row["observedAt"] for row in rows)
    limit = [*evaluation(desk), "--json"]
    last_fresh = (instant_ms(oldest) or 0) + 35 * DAY_MS
    call("production", "evaluate", *limit, "--output", tmp_path / "a", *at(last_fresh))
    done = call("production", "evaluate", *limit, "--output", tmp_path / "b", *at(last_fresh + 1), expect=1)
    assert [blocker["code"] for blocker in json.loads(done.stdout)["blockers"]] == ["trace-stale"]


def test_every_file_is_private_to_its_owner(desk: Path) -> None:
    for path in [desk / "out", *(desk / "out").rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_the_same_inputs_and_clock_may_be_run_again_and_another_result_never_overwrites(desk: Path) -> None:
    again = ("--manifest", desk / "out" / "frozen-labels.json", "--operator", people.OPERATOR)
    same = call("production", "run-kit", *again, "--overlap", "20", "--output", desk / "out", *at(TIMES.after_log(6)))
    assert "ready" in same.stdout
    other = call("production", "run-kit", *again, "--output", desk / "out", *at(TIMES.after_log(7)), expect=2)
    assert "never overwritten" in other.stderr


def test_an_edited_figure_is_refused_though_its_digest_was_computed_anew(desk: Path, tmp_path: Path) -> None:
    call("production", "evaluate", *evaluation(desk), "--output", tmp_path, *at(VERDICT))
    forged = document(tmp_path / "production-metrics.json")
    forged["result"]["metrics"]["precision"]["numerator"] += 1
    forged["digest"] = digest_of(forged)
    done = call("verify", put(tmp_path / "forged.json", forged), expect=1)
    assert "REFUSED" in done.stdout
    assert "/result/metrics/precision/numerator" in done.stdout


def legacy_log(path: Path) -> Path:
    rows = [{"id": n, "text": f"Where is object {n}?", "ts": "2026-11-01T10:00:00Z", "ok": True} for n in range(2497)]
    return put(path, rows)


def test_a_log_of_legacy_rows_attests_to_as_many_malformed_ones_and_exports_nothing(tmp_path: Path) -> None:
    log = legacy_log(tmp_path / "ai-query-log.json")
    out = tmp_path / "out"
    done = call("production", "attest", "--input", log, "--output", out, "--json", *at(VERDICT), expect=1)
    told = json.loads(done.stdout)
    assert told["result"]["rowCount"] == told["result"]["outcomes"]["malformed"] == 2497
    assert told["result"]["outcomes"]["eligible"] == 0
    assert told["blockers"] == [{"code": "too-few-eligible-questions", "subject": "queryLog", "count": 0}]
    template = document(out / "attestation-template.json")
    assert [key for key, value in template.items() if value is not None] == ["logSha256", "version"]
    times = Timeline(VERDICT + 4 * DAY_MS)
    attestation = put(tmp_path / "a.json", people.attestation(template, times))
    call("production", "export", "--input", log, "--attestation", attestation, "--output", out, *at(VERDICT), expect=1)
    assert not (out / "private" / "question-export.json").exists()
    assert document(out / "question-export-receipt.json")["caseCount"] == 0


BROKEN_FILES = {
    "not JSON": (b"hello", "not JSON", 0),
    "empty": (b"", "empty", 0),
    "blank": (b" \n\n", "empty", None),
    "truncated": (b'[{"queryId":"a"', "truncated", None),
    "not UTF-8": (b'[{"queryId":"\xff"}]', "not UTF-8", 13),
    "UTF-16": ('[{"queryId":"a"}]'.encode("utf-16"), "not UTF-8", 0),
    "a cut gzip": (gzip.compress(b"[]" + b" " * 5000)[:-6], "", None),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_log_that_is_no_log_ends_in_one_line_with_file_offset_and_rule(tmp_path: Path, name: str) -> None:
    data, rule, offset = BROKEN_FILES[name]
    log = tmp_path / "ai-query-log.json"
    log.write_bytes(data)
    done = call("production", "attest", "--input", log, "--output", tmp_path / "out", expect=2)
    [line] = done.stderr.splitlines()
    assert str(log) in line
    assert rule in line
    if offset is not None:
        assert f"at byte {offset}" in line
    assert not (tmp_path / "out" / "query-log-attestation.json").exists()


@pytest.mark.parametrize("command", ["attest", "prepare"])
@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000], ids=["lists", "objects"])
def test_100_000_levels_of_nesting_are_refused_within_seconds(tmp_path: Path, command: str, data: bytes) -> None:
    log = tmp_path / "deep.json"
    log.write_bytes(data)
    started = time.monotonic()
    done = call("production", command, "--input", log, "--output", tmp_path / "out", expect=2)
    assert time.monotonic() - started < 10
    [line] = done.stderr.splitlines()
    assert "byte" in line


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    done = call("production", "attest", "--input", tmp_path / "no.json", "--output", tmp_path / "out", expect=2)
    assert "no such file" in done.stderr
    done = call("production", "attest", "--input", tmp_path, "--output", tmp_path / "out", expect=2)
    assert "directory" in done.stderr


def test_a_call_without_its_options_says_which_are_missing(tmp_path: Path) -> None:
    done = call("production", "export", expect=2)
    assert "missing --input, --attestation, --output; or name a round with --round NAME" in done.stderr
    done = call("production", "attest", "--round", "r", "--output", tmp_path, expect=2)
    assert "leave files and --output out" in done.stderr
    done = call("production", "attest", "--as-of", "yesterday", expect=2)
    assert "not an instant" in done.stderr


@pytest.mark.parametrize("name", ["", "../up", "a,b", "a...b", "café", "A", "x" * 81, "a\nb", "."])
def test_a_name_that_is_no_rounds_is_refused(tmp_path: Path, name: str) -> None:
    done = call("production", "attest", "--round", name, home=tmp_path, expect=2)
    assert "a round's name is 1 to 80 of" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_in_a_round_each_stage_says_what_it_waits_for(tmp_path: Path) -> None:
    done = call("production", "attest", "--round", "r-1", home=tmp_path, expect=1)
    assert "waiting for: query log in" in done.stderr
    done = call("production", "evaluate", "--round", "r-1", home=tmp_path, expect=1)
    assert "waiting for: a frozen-labels artifact of round r-1" in done.stderr


def test_in_a_round_a_second_run_keeps_the_artifact_and_loads_the_store(tmp_path: Path) -> None:
    inbox = tmp_path / "rounds" / "r-1" / "inbox"
    inbox.mkdir(parents=True)
    log = inbox / "ai-query-log.json"
    log.write_bytes(invented_log.log_bytes(invented_log.invented_rows(seed=3, now=TIMES.log_read, rows=400)))
    first = call("production", "attest", "--round", "r-1", "--json", *at(TIMES.log_read), home=tmp_path)
    second = call("production", "attest", "--round", "r-1", "--json", *at(TIMES.log_read + 1000), home=tmp_path)
    made, again = json.loads(first.stdout), json.loads(second.stdout)
    assert (made["reused"], again["reused"]) == (False, True)
    assert made["digest"] == again["digest"]
    assert made["files"] == again["files"]
    assert call("rounds", home=tmp_path).stdout.split()[:3] == ["r-1", "log_attestation", "ready"]
    assert (tmp_path / "evidence" / "analyst.duckdb").exists()


def test_the_installed_command_ends_a_refusal_in_one_line_without_a_traceback(tmp_path: Path) -> None:
    log = tmp_path / "ai-query-log.json"
    log.write_bytes(b"[{]")
    words = [Path(sys.executable).with_name("meta-eval"), "production", "attest", "--input", log, "--output", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"meta-eval: {log}: not JSON at byte 2")


def test_help_is_quick_and_loads_neither_dagster_nor_pandas() -> None:
    code = (
        "import sys, click.testing, meta_eval.cli.main as m;"
        "r = click.testing.CliRunner().invoke(m.cli, ['--help']);"
        "assert r.exit_code == 0 and 'verify' in r.output;"
        "print([n for n in ('dagster', 'pandas', 'pandera', 'duckdb', 'pyarrow', 'numpy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_has_help_that_says_what_it_does() -> None:
    for words in (
        [],
        ["production"],
        *(["production", name] for name in "attest export prepare freeze run-kit assemble evaluate".split()),
        *([name] for name in "verify rehearse rounds release-manifest".split()),
    ):
        done = call(*words, "--help")
        assert done.stdout.startswith("Usage: meta-eval")
        assert "--help" in done.stdout


def test_verify_works_where_dagster_is_not_installed(desk: Path) -> None:
    blocked = (
        "import sys; sys.modules['dagster'] = None; from meta_eval.cli.main import main; sys.argv[1:] = {!r}; main()"
    )
    words = ["verify", str(desk / "out" / "frozen-labels.json")]
    done = subprocess.run([sys.executable, "-c", blocked.format(words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 verified, 0 refused" in done.stdout


def test_a_release_manifest_lists_files_in_order_and_finds_a_changed_one(tmp_path: Path) -> None:
    release = tmp_path / "release"
    (release / "b").mkdir(parents=True)
    (release / "b" / "two.txt").write_text("2")
    (release / "a.txt").write_text("1")
    manifest = tmp_path / "manifest.json"
    call("release-manifest", release, "--output", manifest)
    assert document(manifest) == {
        "version": 1,
        "files": [
            {"path": "a.txt", "sha256": hashlib.sha256(b"1").hexdigest()},
            {"path": "b/two.txt", "sha256": hashlib.sha256(b"2").hexdigest()},
        ],
    }
    call("release-manifest", release, "--check", manifest)
    (release / "a.txt").write_text("3")
    done = call("release-manifest", release, "--check", manifest, expect=1)
    assert "/files/0" in done.stderr
    (release / "link").symlink_to(release / "a.txt")
    done = call("release-manifest", release, "--output", tmp_path / "m2.json", expect=2)
    assert "a link in a release" in done.stderr
