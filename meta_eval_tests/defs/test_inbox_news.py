"""What is news, tick by tick: the scenarios of public bug reports (A2, A4, A5), in our terms."""

from __future__ import annotations

import os

import pytest

from meta_eval.defs.production import inbox, listing
from meta_eval_tests.defs.desk import Desk


def asked_for(tick: inbox.Tick) -> list[tuple[str, tuple[str, ...]]]:
    return [(request.round, request.stages) for request in tick.requests]


def test_a_new_log_adds_the_partition_and_asks_for_the_one_stage_it_unlocks(desk: Desk) -> None:
    desk.put("r1", "ai-query-log.json")
    tick = desk.tick()
    assert tick.new_rounds == ["r1"]
    assert asked_for(tick) == [("r1", ("log_attestation",))]
    assert desk.tick().requests == []


def test_changed_bytes_under_one_name_are_a_run_of_another_key(desk: Desk) -> None:
    """A2.a: also after a failed run."""
    desk.put("r1", "ai-query-log.json", "[1]")
    first = desk.tick()
    desk.put("r1", "ai-query-log.json", "[2]")
    second = desk.tick()
    assert [len(first.requests), len(second.requests)] == [1, 1]
    assert first.requests[0].run_key != second.requests[0].run_key


def test_a_lost_cursor_starts_nothing_twice_and_says_so(desk: Desk) -> None:
    """A2.b."""
    desk.put("r1", "ai-query-log.json")
    desk.put("r1", "attestation.json")
    desk.tick()
    desk.cursor = None
    tick = desk.tick()
    assert tick.requests == []
    assert [message for message in tick.messages if "ingested already" in message]


@pytest.mark.parametrize("cursor", ["", "nonsense", "e30=", "eJwDAAAAAAE=", '{"version": 1}'])
def test_a_cursor_that_cannot_be_read_is_an_empty_one(desk: Desk, cursor: str) -> None:
    desk.put("r1", "ai-query-log.json")
    desk.cursor = cursor
    assert len(desk.tick().requests) == 1


def test_equal_bytes_in_two_rounds_are_two_runs_and_no_key_repeats(desk: Desk) -> None:
    """A2.c."""
    for name in ("r1", "r2"):
        desk.put(name, "ai-query-log.json")
        desk.put(name, "labels.json")
    keys = [request.run_key for request in desk.tick().requests]
    assert len(keys) == len(set(keys)) == 2


def test_bytes_that_come_back_after_others_are_news_under_a_new_key(desk: Desk) -> None:
    for text in ("[1]", "[2]", "[1]", "[2]", "[1]"):
        desk.put("r1", "ai-query-log.json", text)
        assert len(desk.tick().requests) == 1
    keys = [request.run_key for request in desk.launched]
    assert len(keys) == len(set(keys)) == 5


@pytest.mark.parametrize("age", [35, 40], ids=["an older time (A4.a)", "the same time (A4.b)"])
def test_a_late_file_is_taken_whatever_its_time(desk: Desk, age: float) -> None:
    desk.put("r1", "ai-query-log.json", age=10)
    desk.tick()
    desk.put("r2", "ai-query-log.json", age=age)
    assert asked_for(desk.tick()) == [("r2", ("log_attestation",))]


def test_an_unreadable_file_is_named_and_stops_no_other(desk: Desk) -> None:
    """A4.c. A folder under a file's name cannot be read by anybody, root included."""
    desk.put("r1", "ai-query-log.json")
    desk.put("r3", "ai-query-log.json")
    broken = desk.put("r2", "ai-query-log.json")
    world = desk._world()
    original = world.sha_of

    def sha_of(found: listing.Found) -> str | None:
        if found.round == "r2":
            raise PermissionError(f"{broken}: a message that is not shown")
        return original(found)

    def tick() -> inbox.Tick:
        result = inbox.look(
            listing.list_inboxes(desk.home / "rounds"),
            desk.cursor,
            inbox.World(desk.now, set(), sha_of, lambda _: set(), world.times_asked),
        )
        desk.cursor = result.cursor
        desk.launched += result.requests
        return result

    first, second = tick(), tick()
    assert [request.round for request in first.requests] == ["r1", "r3"]
    assert second.requests == []
    for result in (first, second):
        assert result.messages == ["r2: ai-query-log.json cannot be read; check its permissions"]
    assert [request.round for request in desk.tick().requests] == ["r2"], "it is taken once it can be read"


def test_a_growing_file_is_taken_once_and_whole(desk: Desk) -> None:
    """A4.d."""
    desk.put("r1", "ai-query-log.json", "[1, 2", age=1)
    assert desk.tick(after=2).requests == []
    desk.put("r1", "ai-query-log.json", "[1, 2, 3", age=1)
    assert desk.tick(after=2).requests == []
    whole = desk.put("r1", "ai-query-log.json", "[1, 2, 3]", age=1)
    assert desk.tick(after=2).requests == []
    (request,) = desk.tick(after=2).requests
    assert request.news == {"query_log": listing.file_receipt(whole)}
    assert len(desk.hashed) == 1


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_look(desk: Desk) -> None:
    path = desk.put("r1", "ai-query-log.json", "[1]")
    found = listing.list_inboxes(desk.home / "rounds").files[0]
    path.write_text("[1, 2]", encoding="utf-8")
    assert listing.steady_receipt(desk.home / "rounds", found) is None


def test_a_file_from_the_future_is_taken_when_it_holds_still(desk: Desk) -> None:
    desk.put("r1", "ai-query-log.json", age=-86_400)
    assert desk.tick().requests == []
    assert len(desk.tick().requests) == 1


def test_a_touched_a_resaved_and_a_renamed_file_start_nothing(desk: Desk) -> None:
    path = desk.put("r1", "ai-query-log.json", "[1]")
    desk.tick()
    os.utime(path, ns=(desk.now, desk.now))
    assert [desk.tick().requests, desk.tick().requests] == [[], []]
    desk.put("r1", "ai-query-log.json", "[1]", age=20)
    assert desk.tick().requests == []
    path.rename(path.with_name("ai-query-log.jsonl"))
    assert [desk.tick().requests, desk.tick().requests] == [[], []]


def test_a_file_that_goes_and_comes_back_as_it_was_starts_nothing(desk: Desk) -> None:
    path = desk.put("r1", "ai-query-log.json")
    desk.tick()
    path.rename(desk.home / "aside")
    assert desk.tick().requests == []
    (desk.home / "aside").rename(path)
    tick = desk.tick()
    assert (tick.requests, tick.messages) == ([], [])


@pytest.mark.parametrize(
    "name",
    ["2024,Q1", "2024-01...2024-02", "batch\n1", "..hidden", " r1", "R1", "caf\u00e9", "cafe\u0301", "a|b"],
)
def test_a_folder_that_is_no_rounds_is_reported_and_becomes_no_partition(desk: Desk, name: str) -> None:
    """A5.a to A5.f: no raw name reaches a partition key, whatever the folder is called."""
    desk.put(name, "ai-query-log.json")
    desk.put("r1", "ai-query-log.json")
    tick = desk.tick()
    assert tick.new_rounds == ["r1"]
    (message,) = tick.messages
    assert "no round's" in message
    assert message.isascii()
    assert message.isprintable()


def test_a_burst_is_one_tick(desk: Desk) -> None:
    for number in range(50):
        for name in ("ai-query-log.json", "attestation.json", "labels.json", "run-operator.json"):
            desk.put(f"r{number}", name, "{}")
    tick = desk.tick()
    assert len(tick.news) == 200
    assert len({request.run_key for request in tick.requests}) == 50
    assert desk.tick().requests == []


def test_two_files_that_claim_one_input_are_reported(desk: Desk) -> None:
    desk.put("r1", "ai-query-log.json")
    desk.put("r1", "ai-query-log.jsonl")
    desk.put("r1", "notes.txt")
    tick = desk.tick()
    assert tick.requests == []
    assert tick.messages == [
        "r1: 1 files in the inbox have names that no stage reads",
        "r1: two files claim to be the query_log; keep one of the two",
    ]
