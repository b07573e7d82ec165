"""Packets: what is known before the freeze, who may open, once, and what is never fresh again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.usefulness import steps, wording
from meta_eval.lanes.usefulness.custody import FOLLOW_UPS, file_blockers, look_at, register_name
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.rehearsal.invented import own_objects
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study
from meta_eval_tests.lanes.usefulness.world import HOUR, START, chained, facts_of, found, whole

Found = set[tuple[str, str, int]]


def test_sealed_metadata_holds_no_question_and_no_digest_of_one() -> None:
    sealed = str(whole().made["seal set-a"])
    for question in whole().documents["set-a"]["questions"]:
        assert question["question"] not in sealed
        assert question["questionId"] not in sealed
        assert wording.question_digest(question["question"]) not in sealed
    assert whole().made["seal set-a"]["result"]["clauseCounts"] == {"1": 5, "2": 55}


SEAL_BREAKS: list[tuple[str, Callable[[Any], Any], Found]] = [
    ("59 questions", lambda d: d["questions"].pop(), {("not-60-questions", "packet.questions", 59)}),
    ("another's set", lambda d: d.update(setId="set-b"), {("set-differs", "packet.setId", 1)}),
    (
        "another's code",
        lambda d: d.update(authorCode="AUT-2B"),
        {("not-the-author-of-this-set", "packet.authorCode", 1)},
    ),
    ("no approval", lambda d: d.update(sourcesApproved=False), {("sources-not-approved", "packet.sourcesApproved", 1)}),
    ("executed", lambda d: d.update(notExecuted=False), {("no-execution-not-stated", "packet.notExecuted", 1)}),
    ("no retention", lambda d: d.pop("retentionDays"), {("missing-key", "packet.retentionDays", 1)}),
    ("no permission said", lambda d: d.pop("publication"), {("missing-key", "packet.publication", 1)}),
    (
        "no clause",
        lambda d: d["questions"][0].update(clauses=[]),
        {("question-without-clause", "packet.questions[].clauses", 1)},
    ),
    (
        "an id twice",
        lambda d: d["questions"][0].update(questionId="set-a-01"),
        {("question-id-repeated", "packet.questions", 1)},
    ),
    (
        "a question twice",
        lambda d: d["questions"][0].update(question=d["questions"][1]["question"].upper()),
        {("question-repeated", "packet.questions", 1)},
    ),
    (
        "a source off limits",
        lambda d: d["questions"][0]["oracle"]["sources"][0].update(url="https://www.metmuseum.org/x"),
        {("url-not-a-reserved-name", "packet.questions[].oracle.sources[].url", 1)},
    ),
]


@pytest.mark.parametrize(("edit", "expected"), [b[1:] for b in SEAL_BREAKS], ids=[b[0] for b in SEAL_BREAKS])
def test_one_broken_thing_in_a_packet_is_named(edit: Callable[[Any], Any], expected: Found) -> None:
    document = whole().copy("set-a")
    edit(document)
    assert found(whole().sealed("set-a", document)) == expected


FILE_BREAKS = {
    "packet-mode-not-0600": {"mode": "0640"},
    "packet-is-a-symlink": {"symlink": True, "regular": False},
    "packet-owned-by-another": {"owned": False},
    "packet-inside-export-folder": {"in_export": True},
    "packet-not-a-regular-file": {"regular": False},
}


@pytest.mark.parametrize("rule", FILE_BREAKS)
def test_a_packet_out_of_custody_is_neither_sealed_nor_opened(rule: str) -> None:
    document = whole().documents["set-a"]
    facts = facts_of(document, **FILE_BREAKS[rule])
    assert found(whole().sealed(facts=facts, unread=True)) == {(rule, "packet", 1)}
    assert found(whole().opened(facts=facts)) == {(rule, "packet", 1)}


OPENINGS: dict[str, tuple[Callable[[], dict[str, Any]], Found]] = {
    "before the freeze": (
        lambda: {"freeze": None, "state": whole().state("freeze")},
        {("opening-before-freeze", "packet", 1)},
    ),
    "before the preflight": (lambda: {"state": whole().state("preflight")}, {("not-yet-preflight", "register", 1)}),
    "twice": (lambda: {"state": whole().state("record-runs")}, {("packet-already-opened", "packet", 1)}),
    "by the implementer": (lambda: {"opener": "IMP-6T"}, {("opener-is-not-the-runner", "packet", 1)}),
    "by a name": (lambda: {"opener": "Jan Jansen"}, {("opener-is-not-the-runner", "packet", 1)}),
    "after a byte changed": (
        lambda: {"document": whole().copy("set-a") | {"retentionDays": 366}},
        {("packet-receipt-mismatch", "packet", 1)},
    ),
    "never sealed": (
        lambda: {"state": whole().state("open set-a") | {"sealed": {}}},
        {("packet-not-sealed", "packet", 1)},
    ),
    "consumed elsewhere since": (
        lambda: {"elsewhere": {wording.question_digest(whole().documents["set-a"]["questions"][0]["question"])}},
        {("question-consumed", "packet", 1)},
    ),
    "another freeze": (
        lambda: {"state": whole().state("open set-a") | {"frozen": "0" * 64}},
        {("differs-from-register", "frozen", 1)},
    ),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_refused_opening_is_named_and_tells_nothing(name: str) -> None:
    given, expected = OPENINGS[name]
    made = whole().opened(**given())
    assert found(made) == expected
    assert made["replay"]["questions"] == []
    assert "Jansen" not in str(made)


def test_an_opening_consumes_its_questions() -> None:
    made = whole().made["open set-a"]
    assert len(made["replay"]["questions"]) == 60
    assert (whole().lines[6][0], len(whole().lines[6][1]["questions"])) == ("consumed", 60)


# --- files, as the terminal meets them ---------------------------------------------------------------------------


def put(path: Path, document: Any, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical_bytes(document))
    path.chmod(mode)
    return path


def test_a_packet_file_is_judged_by_what_it_is(tmp_path: Path) -> None:
    export = tmp_path / "export"
    good = put(tmp_path / "packet.json", {"a": 1})
    facts, data = look_at(good, export_folder=export)
    assert (file_blockers(facts.document, subject="packet"), data) == ([], b'{"a":1}')
    link = tmp_path / "link.json"
    link.symlink_to(good)
    rules = {}
    for name, path in {
        "link": link,
        "open to a group": put(tmp_path / "open.json", {}, 0o640),
        "in the export": put(export / "packet.json", {}),
    }.items():
        facts, data = look_at(path, export_folder=export)
        assert data == b""
        rules[name] = [blocker.code for blocker in file_blockers(facts.document, subject="packet")]
    assert rules == {
        "link": ["packet-is-a-symlink"],
        "open to a group": ["packet-mode-not-0600"],
        "in the export": ["packet-inside-export-folder"],
    }
    inner = export / "linked"
    inner.symlink_to(tmp_path)
    assert look_at(inner / "packet.json", export_folder=export)[0].in_export
    with pytest.raises(InputError, match="no such file"):
        look_at(tmp_path / "none.json", export_folder=export)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another")
def test_a_packet_of_another_owner_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "packet.json", {})
    os.chown(path, 12345, 12345)
    facts, data = look_at(path, export_folder=tmp_path / "export")
    assert (facts.owned, data) == (False, b"")


def declared_study(tmp_path: Path, name: str, *, follows: list[str]) -> Study:
    place = Study(tmp_path / "studies", name).make()
    put(place.inbox / "study.json", people.study(follows))
    made, _ = steps.declare(place, Setting(START, name))
    assert made["status"] == "ready"
    return place


def consume(place: Study, set_id: str = "set-a") -> None:
    """An opening on record and its packet retained, as the step leaves them."""
    packet = put(place.packet_file(set_id), people.packet(set_id, own_objects(1), START))
    receipt = place.retain(packet)
    texts = [
        wording.question_digest(entry["question"])
        for entry in people.packet(set_id, own_objects(1), START)["questions"]
    ]
    place.register.append("consumed", {"setId": set_id, "receipt": receipt, "questions": texts}, at_ms=START)


def test_consumption_survives_the_deletion_of_local_files(tmp_path: Path) -> None:
    first = declared_study(tmp_path, "first", follows=[])
    consume(first)
    for path in [first.packet_file("set-a"), *(first.private / "kept").iterdir()]:
        path.unlink()
    second = declared_study(tmp_path, "second", follows=["first"])
    put(second.packet_file("set-a"), people.packet("set-a", own_objects(1), START))
    made, _ = steps.seal(second, Setting(START + HOUR, "second"), "set-a")
    assert found(made) == {
        ("question-consumed", "packet.questions", 60),
        ("consumed-questions-not-at-hand", "register", 60),
    }


def test_a_repaired_prompt_is_not_fresh_and_a_similar_one_waits_for_a_person(tmp_path: Path) -> None:
    first = declared_study(tmp_path, "first", follows=[])
    consume(first)
    second = declared_study(tmp_path, "second", follows=["first"])
    packet = people.packet("set-a", own_objects(2), START)
    old = people.packet("set-a", own_objects(1), START)["questions"]
    packet["questions"][0]["question"] = f"Please tell me: {old[0]['question'].lower()}"
    packet["questions"][1]["question"] = old[1]["question"].replace(
        "Who made the", "Tell which persons once built that"
    )
    put(second.packet_file("set-a"), packet)
    made, _ = steps.seal(second, Setting(START + HOUR, "second"), "set-a")
    codes = {code: count for code, _, count in found(made)}
    assert codes["question-near-paraphrase-of-consumed"] >= 1
    assert codes["question-needs-clearance"] >= 1
    # The list, with both texts, is for whoever clears, and for nobody else.
    [listed] = second.folder.rglob("to-clear-set-a-*.json")
    assert listed.parent == second.adjudicator
    assert listed.stat().st_mode & 0o077 == 0
    cleared = {entry["questionId"]: entry for entry in json.loads(listed.read_bytes())}
    assert cleared["set-a-01"]["question"] == packet["questions"][1]["question"]
    assert cleared["set-a-01"]["resembles"] == wording.normalised(old[1]["question"])
    assert packet["questions"][1]["question"] not in str(made)


def test_two_studies_that_seal_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    places = [declared_study(tmp_path, name, follows=[other]) for name, other in (("one", "two"), ("two", "one"))]
    for place in places:
        put(place.packet_file("set-a"), people.packet("set-a", own_objects(1), START))
    with ThreadPoolExecutor(2) as pool:
        sealing = [pool.submit(steps.seal, place, Setting(START + HOUR, place.name), "set-a") for place in places]
        assert [one.result(timeout=30)[0]["status"] for one in sealing] == ["ready", "ready"]


def test_a_cleared_question_is_taken() -> None:
    texts = wording.normalised_by_digest(["who made the invented amber tile 00100 in 1500"])
    other = chained(
        register_name("old"), [("consumed", {"setId": "x", "receipt": "0" * 64, "questions": sorted(texts)})]
    )
    packet = whole().copy("set-a")
    packet["questions"][3]["question"] = "who designed that invented amber tile 00100 before 1500"
    assert (
        75
        <= wording.token_set_ratio(
            *(wording.normalised(t) for t in (packet["questions"][3]["question"], *texts.values()))
        )
        < 90
    )
    given: dict[str, Any] = {"others": [other], "texts": texts}
    assert {code for code, _, _ in found(whole().sealed("set-a", packet, **given))} == {"question-needs-clearance"}
    bodies = [
        {"setId": "set-a", "questionId": entry["questionId"], "receipt": facts_of(packet).receipt}
        for entry in packet["questions"]
    ]
    lines = [*whole().lines[:1], *(("cleared", body) for body in bodies)]
    entries = chained(register_name("spring"), lines)
    assert found(whole().sealed("set-a", packet, entries=entries, **given)) == set()
    # A clearance is of those very bytes: another version of the packet needs another.
    packet["retentionDays"] = 30
    assert found(whole().sealed("set-a", packet, entries=entries, **given)) != set()


def test_after_a_failed_acceptance_the_register_must_tell_of_what_followed() -> None:
    failed = [("accepted", {"digest": "0" * 64, "status": "failed"})]
    assert found(whole().sealed(others=[chained("x", failed)])) == {
        ("failed-attempt-not-followed-up", event, 1) for event in FOLLOW_UPS
    }
    two = [*failed, *((event, {}) for event in FOLLOW_UPS[:2])]
    assert found(whole().sealed(others=[chained("x", two)])) == {("failed-attempt-not-followed-up", FOLLOW_UPS[2], 1)}
    whole_story = [*failed, *((event, {}) for event in FOLLOW_UPS)]
    assert found(whole().sealed(others=[chained("x", whole_story)])) == set()
    too_early = [*((event, {}) for event in FOLLOW_UPS), *failed]
    assert len(found(whole().sealed(others=[chained("x", too_early)]))) == 3


def test_a_set_is_sealed_once_and_not_after_the_freeze() -> None:
    assert found(whole().sealed(entries=whole().entries("seal set-b"))) == {("set-already-sealed", "packet", 1)}
    after = whole().entries("preflight")
    assert found(whole().sealed(entries=after)) == {
        ("set-already-sealed", "packet", 1),
        ("sealed-after-freeze", "packet", 1),
    }


# --- the ratio ---------------------------------------------------------------------------------------------------

# Made with rapidfuzz 3.14.6, fuzz.token_set_ratio, on the texts as they stand here.
VECTORS = [
    ("who made the tile", "who made the tile in room seven", 100.0),
    ("who made the blue vase", "who painted the blue vase", 87.17948717948718),
    ("when was this given", "who made it", 46.666666666666664),
    ("oldest tile in room seven", "seven oldest rooms with a tile", 83.63636363636364),
    ("a b c", "d e f", 40.0),
]


@pytest.mark.parametrize(("one", "other", "expected"), VECTORS)
def test_the_token_set_ratio_is_that_of_rapidfuzz(one: str, other: str, expected: float) -> None:
    assert float(wording.token_set_ratio(one, other)) == pytest.approx(expected, abs=1e-12)
    assert wording.token_set_ratio(one, other) == wording.token_set_ratio(other, one)


_WORDS = st.sampled_from("who made the tile in room seven a ab é ß 7 blue vase oldest 東京".split())
_TEXTS = st.one_of(st.lists(_WORDS, max_size=14).map(" ".join), st.text(max_size=40).map(wording.normalised))


@given(_TEXTS, _TEXTS)
def test_the_token_set_ratio_is_rapidfuzz_on_any_normalised_texts(one: str, other: str) -> None:
    assert float(wording.token_set_ratio(one, other)) == pytest.approx(fuzz.token_set_ratio(one, other), abs=1e-9)


def test_normalisation_knows_one_question_in_many_spellings() -> None:
    spellings = ["Who made the tile?", "  who MADE   the\ttile ", "Ｗｈｏ made the “tile”!"]
    assert len({wording.question_digest(text) for text in spellings}) == 1
    assert wording.token_set_ratio("", "who") == 0
