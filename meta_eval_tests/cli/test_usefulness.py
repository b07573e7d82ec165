"""`meta-eval usefulness` as a person uses it: a study step by step, each ending of a rehearsal, the two registers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from meta_eval.cli.main import cli
from meta_eval.cli.usefulness_rehearsal import golden_objects
from meta_eval.evidence.canonical import canonical_bytes, digest
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.errors import InputError, MetaEvalError, UsageError, VerificationError
from meta_eval.lanes import catalogue
from meta_eval.lanes.golden import steps as golden
from meta_eval.lanes.golden.seed_records import read_records
from meta_eval.lanes.usefulness import report, steps
from meta_eval.lanes.usefulness.hiding import text_digest
from meta_eval.lanes.usefulness.rehearsal import invented, people
from meta_eval.lanes.usefulness.rehearsal.invented import own_objects
from meta_eval.lanes.usefulness.rehearsal.play import Script, play
from meta_eval.lanes.usefulness.rehearsal.scenarios import SCENARIOS
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study
from meta_eval_tests.lanes.usefulness.world import whole

AT = "2026-11-30T19:00:00.000Z"
START = 1_796_000_000_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("META_EVAL_HOME", str(tmp_path))
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, ["usefulness", *words])


def told(*words: str, exit_code: int = 0) -> Any:
    result = call(*words, "--json")
    assert result.exit_code == exit_code, (result.output, result.exception)
    return json.loads(result.output)


def put(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(canonical_bytes(document))
    path.chmod(0o600)
    return path


class Desk:
    """A study at the terminal; each call is an hour after the one before it."""

    def __init__(self, home: Path, name: str = "spring") -> None:
        self.folder, self.name, self.hour = home / "studies" / name, name, 0

    def at(self) -> list[str]:
        self.hour += 1
        return ["--study", self.name, "--evaluated-at", written_instant(START + self.hour * 3_600_000)]

    def step(self, *words: str, exit_code: int = 0) -> Any:
        return told(*words, *self.at(), exit_code=exit_code)

    def to_the_freeze(self) -> Any:
        put(self.folder / "inbox" / "study.json", people.study())
        self.step("declare")
        for set_id in ("set-a", "set-b"):
            put(self.folder / "packets" / f"{set_id}.json", people.packet(set_id, own_objects(1), START))
            self.step("seal", "--set", set_id)
        terms = people.budget(enough=True)
        put(self.folder / "inbox" / "budget.json", terms)
        put(self.folder / "inbox" / "freeze.json", people.freeze(terms))
        return self.step("freeze")

    def to_the_sheets(self) -> None:
        frozen = self.to_the_freeze()
        self.step("preflight")
        for set_id in ("set-a", "set-b"):
            self.step("open", "--set", set_id, "--by", people.RUNNER)
        document, booked = people.runs(SCENARIOS["accepted"], own_objects(1), frozen["digest"])
        steps.book(Study(self.folder.parent, self.name), Setting(START + self.hour * 3_600_000, self.name), *booked)
        put(self.folder / "inbox" / "runs.json", document)
        self.step("record-runs")
        self.step("blind")

    def score(self, code: str, *, strict: bool) -> Any:
        sheet = json.loads((self.folder / "scorers" / code / "sheet.json").read_bytes())
        filled = put(self.folder / "scorers" / code / "scores.json", people.scores(sheet, strict=strict))
        return self.step("score", "--input", str(filled))


def test_a_study_step_by_step(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_sheets()
    assert not (desk.folder / "adjudicator").exists()
    desk.score(people.SCORERS[0], strict=False)
    assert not (desk.folder / "adjudicator").exists()
    assert _rows(home, "SELECT count(*) FROM scores") == 0
    desk.score(people.SCORERS[1], strict=True)
    sheet = json.loads((desk.folder / "adjudicator" / "sheet.json").read_bytes())
    put(desk.folder / "inbox" / "adjudication.json", people.adjudication(sheet))
    desk.step("adjudicate")
    assert _rows(home, "SELECT count(*) FROM scores") == 480
    desk.step("unblind")
    verdict = desk.step("accept")
    assert (verdict["status"], verdict["result"]["combined"]["gain"]) == ("rehearsed", 9)
    page = [Path(name) for name in verdict["files"] if name.endswith(".html")]
    assert "Rehearsed" in page[0].read_text()
    published = desk.step("publish")
    assert published["status"] == "ready"
    export = next((desk.folder / "export").glob("usefulness-export-*.json"))
    again = told("replay", str(export))
    assert again["result"]["sets"] == verdict["result"]["sets"]
    checked = told("register", "verify", "--study", "spring")
    chains = checked["registers"]
    assert (chains["custody"]["entries"], chains["budget"]["entries"], checked["artifacts"]) == (17, 253, 15)
    assert _rows(home, "SELECT count(*) FROM acceptance_disagreements") == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in desk.folder.rglob("*"))


def _rows(home: Path, sql: str) -> Any:
    result = CliRunner().invoke(cli, ["query", sql, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return next(iter(json.loads(result.output)[0].values()))


def test_an_opening_out_of_turn_is_refused_by_name(home: Path) -> None:
    desk = Desk(home)
    put(desk.folder / "inbox" / "study.json", people.study())
    desk.step("declare")
    packet = put(desk.folder / "packets" / "set-a.json", people.packet("set-a", own_objects(1), START))
    desk.step("seal", "--set", "set-a")
    opened = ("open", "--set", "set-a", "--by", people.RUNNER)

    def codes(*words: str) -> list[str]:
        return [blocker["code"] for blocker in desk.step(*words, exit_code=1)["blockers"]]

    assert codes(*opened) == ["opening-before-freeze"]
    put(desk.folder / "packets" / "set-b.json", people.packet("set-b", own_objects(1), START))
    desk.step("seal", "--set", "set-b")
    terms = people.budget(enough=True)
    put(desk.folder / "inbox" / "budget.json", terms)
    put(desk.folder / "inbox" / "freeze.json", people.freeze(terms))
    desk.step("freeze")
    desk.step("preflight")
    assert codes("open", "--set", "set-a", "--by", "IMP-6T") == ["opener-is-not-the-runner"]
    packet.chmod(0o640)
    assert codes(*opened) == ["packet-mode-not-0600"]
    packet.chmod(0o600)
    good = packet.read_bytes()
    packet.write_bytes(good.replace(b"365", b"366"))
    assert codes(*opened) == ["packet-receipt-mismatch"]
    packet.write_bytes(good)
    moved = packet.rename(packet.with_name("elsewhere.json"))
    packet.symlink_to(moved)
    assert codes(*opened) == ["packet-is-a-symlink"]
    packet.unlink()
    moved.rename(packet)
    assert desk.step(*opened)["status"] == "ready"
    assert codes(*opened) == ["packet-already-opened"]


def test_a_refused_score_says_so_and_changes_nothing(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_sheets()
    sheet = json.loads((desk.folder / "scorers" / people.SCORERS[0] / "sheet.json").read_bytes())
    scores = people.scores(sheet, strict=False)
    scores["scores"].pop()
    short = put(desk.folder / "scorers" / people.SCORERS[0] / "draft.json", scores)
    made = desk.step("score", "--input", str(short), exit_code=1)
    assert [blocker["code"] for blocker in made["blockers"]] == ["answer-not-scored"]
    assert desk.score(people.SCORERS[0], strict=False)["status"] == "ready"
    again = desk.step("score", "--input", str(desk.folder / "scorers" / people.SCORERS[0] / "scores.json"), exit_code=1)
    assert [blocker["code"] for blocker in again["blockers"]] == ["score-already-recorded"]


def test_no_question_answer_or_reason_is_outside_the_folders_of_those_who_may_read_it(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_sheets()
    desk.score(people.SCORERS[0], strict=False)
    words = [b"invented amber", b"Who made the", b"It was made by", b"By rule:"]
    open_to = ("packets", "private", "scorers", "inbox", "adjudicator")
    for path in home.rglob("*"):
        if path.is_file() and not any(part in open_to for part in path.parts):
            data = path.read_bytes()
            assert not [word for word in words if word in data], path.name
    told_digest = text_digest("x", b"k" * 32)
    assert re.fullmatch(r"[0-9a-f]{64}", told_digest)


ENDINGS = {
    "over-budget": (1, "blocked", ["over-budget"]),
}


@pytest.mark.parametrize("scenario", ENDINGS)
def test_each_ending_of_a_rehearsal(scenario: str, home: Path) -> None:
    exit_code, status, codes = ENDINGS[scenario]
    made = told("rehearse", "--scenario", scenario, "--as-of", AT, exit_code=exit_code)
    assert (made["status"], [blocker["code"] for blocker in made["blockers"]]) == (status, codes)


def test_a_rehearsal_prints_the_paired_table(home: Path) -> None:
    result = call("rehearse", "--study", "demo", "--as-of", AT)
    assert result.exit_code == 0
    assert re.search(r"set-a +40 +46 +37 +9 +3 +11 +\+6 +60", result.output)
    assert re.search(r"both sets +82 +91 +76 +15 +6 +23 +\+9 +120", result.output)
    assert isinstance(call("rehearse", "--study", "demo", "--as-of", AT).exception, UsageError)


def test_a_failed_attempt_must_be_followed_up(home: Path) -> None:
    script = Script(SCENARIOS["no-gain"], own_objects(1), START, os.urandom(32), "5e" * 32)
    assert dict(play(Study(home / "studies", "first"), script))["accept"]["status"] == "failed"
    desk = Desk(home, "second")
    put(desk.folder / "inbox" / "study.json", people.study(follows=["first"]))
    desk.step("declare")
    put(desk.folder / "packets" / "set-a.json", people.packet("set-a", own_objects(77), START))

    def owed() -> set[str]:
        made = desk.step("seal", "--set", "set-a", exit_code=1)
        return {b["subject"] for b in made["blockers"] if b["code"] == "failed-attempt-not-followed-up"}

    assert len(owed()) == 3
    paper = {"version": 1, "byCode": "OWN-5N", "evidenceDigest": people.sha("x"), "statement": "Invented: one cause."}
    source = put(home / "note.json", paper)
    events = ("shared-cause-diagnosis", "bounded-development-experiment", "unsealed-falsification-challenge")
    stranger = put(home / "stranger.json", {**paper, "byCode": "NOB-2X"})
    refused = call("register", "record", "--study", "first", "--event", events[0], "--input", str(stranger))
    assert "holds a role" in str(refused.exception)
    assert "NOB-2X" not in str(refused.exception)
    for event in events:
        result = call("register", "record", "--study", "first", "--event", event, "--input", str(source))
        assert result.exit_code == 0, result.output
    assert owed() == set()


def test_the_ledger_at_the_terminal(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_freeze()
    desk.step("preflight")
    where = ["--study", "spring"]
    place = ["--arm", "assistant", "--set", "set-a", "--question", "set-a-00", "--attempt", "1"]
    assert call("budget", "reserve", *where, *place, "--reservation", "r-1").exit_code == 0
    again = call("budget", "reserve", *where, *place, "--reservation", "r-2")
    assert str(again.exception) == "completion-reserved-twice"
    assert call("budget", "settle", *where, "--reservation", "r-1").output == "expired  r-1\n"
    shown = told("budget", "show", *where)
    assert (shown["unknownCount"], shown["openReservations"], shown["upperBound"]) == (3, 0, "0.31")


def test_a_broken_register_is_named(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_freeze()
    path = desk.folder / "register.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    result = call("register", "verify", "--study", "spring")
    assert isinstance(result.exception, VerificationError)
    assert result.exception.pointer == "/2"


def test_an_artifact_that_was_replaced_is_named(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_freeze()
    path = next((desk.folder / "artifacts" / "study-freeze").glob("*.json"))
    whole_file = path.read_bytes()
    path.write_bytes(whole_file.replace(b'"mostAttempts":2', b'"mostAttempts":3'))
    assert isinstance(call("register", "verify", "--study", "spring").exception, VerificationError)
    path.unlink()
    assert "is gone" in str(call("register", "verify", "--study", "spring").exception)


def _verify(*words: str, exit_code: int) -> dict[str, str]:
    """What `meta-eval verify` refuses, by the name of the file's kind, and why."""
    result = CliRunner().invoke(cli, ["verify", *words, "--json"])
    assert result.exit_code == exit_code, (result.output, result.exception)
    told = json.loads(result.output)["artifacts"]
    return {"/".join(Path(row["path"]).parts[-2:-1]): row["reason"] for row in told if not row["verified"]}


def test_verify_covers_a_study_by_name_and_among_all(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_freeze()
    assert _verify("--study", "spring", exit_code=0) == {}
    assert _verify("--all", exit_code=0) == {}
    path = next((desk.folder / "artifacts" / "study-freeze").glob("*.json"))
    honest = path.read_bytes()
    path.write_bytes(honest.replace(b'"mostAttempts":2', b'"mostAttempts":3'))
    for words in (("--study", "spring"), ("--all",)):
        assert set(_verify(*words, exit_code=1)) == {"study-freeze", "artifacts"}
    path.write_bytes(honest)
    register = desk.folder / "register.jsonl"
    register.write_bytes(b"".join(register.read_bytes().splitlines(keepends=True)[1:]))
    assert set(_verify("--all", exit_code=1)) == {"spring"}


def test_verify_refuses_a_forged_freeze_that_its_rewritten_register_names(home: Path) -> None:
    desk = Desk(home)
    desk.to_the_freeze()
    path = next((desk.folder / "artifacts" / "study-freeze").glob("*.json"))
    artifact = json.loads(path.read_bytes())
    artifact["replay"]["study"]["roles"]["owner"]["code"] = "OWN-9Z"
    forged = catalogue.REBUILDS["study-freeze"](artifact)
    path.unlink()
    put(path, forged)
    register = desk.folder / "register.jsonl"
    lines = [json.loads(line) for line in register.read_bytes().splitlines()]
    lines[-1]["body"]["digest"] = forged["digest"]
    body = [(line["event"], line["body"], instant_ms(line["at"])) for line in lines]
    register.unlink()
    register.with_name("register.jsonl.head").unlink()
    for event, kept, at in body:
        Study(home / "studies", "spring").register.append(event, kept, at_ms=at)
    told = _verify("--study", "spring", exit_code=1)
    assert told == {"study-freeze": "keeps something else than what is on record at /replay/study/roles/owner/code"}


def test_what_cannot_be_used_is_refused_without_an_echo(home: Path) -> None:
    for words in (("declare", "--study", "../x"), ("seal", "--study", "none", "--set", "a/b")):
        error = call(*words).exception
        assert isinstance(error, MetaEvalError)
        assert "../x" not in str(error)
        assert "a/b" not in str(error)
    waiting = call("freeze", "--study", "none").exception
    assert "waiting for: the declaration" in str(waiting)
    assert getattr(waiting, "exit_code", None) == 1
    assert isinstance(call("replay", str(put(home / "x.json", {}))).exception, VerificationError)
    assert isinstance(call("replay", str(home / "none.json")).exception, InputError)


def test_every_command_explains_itself() -> None:
    names = re.findall(r"^  ([a-z-]+) ", call("--help").output.split("Commands:")[1], re.MULTILINE)
    due = "declare seal freeze preflight open record-runs blind score adjudicate unblind accept publish replay register"
    assert set(due.split()) <= set(names)
    for name in names:
        assert call(name, "--help").exit_code == 0


# --- the report ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    names = ("accepted", "no-gain")
    return {name: report.report(whole(name).made["accept"]).decode() for name in names}


def test_the_report_is_byte_stable_and_self_contained(pages: dict[str, str]) -> None:
    assert report.report(whole().made["accept"]).decode() == pages["accepted"]
    for page in pages.values():
        assert not re.search(r"(?:src|href)=|https?:|url\(|<script|@import", page)
    assert "41 of 60" in pages["accepted"]
    for words in ("recoveries", "useful in neither", "Defects", "p95 latency", "kappa", "Limits", "McNemar"):
        assert words in pages["accepted"]
    assert "MISSED" in pages["no-gain"]
    assert "Not accepted" in pages["no-gain"]


def test_the_report_names_nobody(pages: dict[str, str]) -> None:
    for code in (*people.AUTHORS.values(), *people.SCORERS, people.RUNNER, people.ADJUDICATOR, "OWN-5N", "IMP-6T"):
        assert code not in pages["accepted"]


def test_a_blocked_acceptance_has_a_report_too() -> None:
    page = report.report(whole().accepted(entries=whole().entries("unblind"))).decode()
    assert "not-yet-unblinded" in page
    assert digest(whole().made["accept"]) not in page


def test_the_rehearsal_asks_about_golden_records_and_its_baseline_is_the_golden_answerer() -> None:
    objects = golden_objects(1)
    things = [objects.record(set_id, number) for set_id in ("set-a", "set-b") for number in range(60)]
    assert len({thing["name"] for thing in things}) == 120
    titles = {record.title for record in read_records(golden.RECORDS)}
    assert all(thing["name"].strip("“”") in titles for thing in things)
    for thing in things:
        # What the museum paid is in no record, so the answerer refuses; all else it finds.
        due = frozenset() if thing["private"] else frozenset({"maker", "year"})
        assert objects.stated(invented.asked(thing)) == due
