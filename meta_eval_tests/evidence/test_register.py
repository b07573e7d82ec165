"""The register: any entry that is removed, moved, edited or repeated is named, and two writers keep one chain."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.register import Register, checked, genesis, sealed_entry

AT = 1_796_000_000_000


def filled(path: Path, count: int = 5) -> Register:
    register = Register(path, "demo")
    for number in range(count):
        register.append("counted", {"number": number}, at_ms=AT + number)
    return register


def lines(register: Register) -> list[bytes]:
    return register.path.read_bytes().splitlines(keepends=True)


def rewrite(register: Register, edit: Callable[[list[bytes]], Any]) -> None:
    kept = lines(register)
    edit(kept)
    register.path.write_bytes(b"".join(kept))


def edited(line: bytes, **changes: Any) -> bytes:
    return canonical_bytes(json.loads(line) | changes) + b"\n"


def resealed(line: bytes, **changes: Any) -> bytes:
    entry = json.loads(line) | changes
    made = sealed_entry(
        seq=entry["seq"], at_ms=AT + 1, event=entry["event"], body=entry["body"], previous=entry["previous"]
    )
    return canonical_bytes(made) + b"\n"


def test_a_register_grows_and_reads_back(tmp_path: Path) -> None:
    register = filled(tmp_path / "r.jsonl")
    entries = register.entries()
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry["body"]["number"] for entry in entries] == [0, 1, 2, 3, 4]
    assert entries[0]["previous"] == genesis("demo")
    assert register.path.stat().st_mode & 0o777 == 0o600
    assert Register(tmp_path / "none.jsonl", "demo").entries() == []


BREAKS: dict[str, tuple[Callable[[list[bytes]], Any], str, str]] = {
    "removed": (lambda kept: kept.pop(2), "removed or moved", "/3"),
    "the first removed": (lambda kept: kept.pop(0), "removed or moved", "/1"),
    "the last removed": (lambda kept: kept.pop(), "removed from the end", "/5"),
    "all removed": (lambda kept: kept.clear(), "removed from the end", "/1"),
    "moved": (lambda kept: kept.insert(1, kept.pop(3)), "removed or moved", "/2"),
    "doubled": (lambda kept: kept.insert(2, kept[1]), "duplicated", "/3"),
    "edited": (lambda kept: kept.__setitem__(2, edited(kept[2], body={"number": 9})), "edited", "/3"),
    "edited and resealed": (lambda kept: kept.__setitem__(2, resealed(kept[2], body={"number": 9})), "follow", "/4"),
    "the last resealed": (lambda kept: kept.__setitem__(4, resealed(kept[4], body={})), "head names", "/5"),
    "a key more": (lambda kept: kept.__setitem__(1, edited(kept[1], note="x")), "not an entry", "/2"),
    "no JSON": (lambda kept: kept.__setitem__(1, b"{\n"), "not an entry", "/2"),
    "an empty line": (lambda kept: kept.insert(1, b"\n"), "not an entry", "/2"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_first_broken_entry_is_named(name: str, tmp_path: Path) -> None:
    edit, rule, pointer = BREAKS[name]
    register = filled(tmp_path / "r.jsonl")
    rewrite(register, edit)
    with pytest.raises(VerificationError, match=rule) as refused:
        register.entries()
    assert refused.value.pointer == pointer
    with pytest.raises(VerificationError):
        register.append("counted", {}, at_ms=AT)


def test_another_registers_chain_is_not_taken(tmp_path: Path) -> None:
    filled(tmp_path / "r.jsonl")
    with pytest.raises(VerificationError, match="does not follow"):
        Register(tmp_path / "r.jsonl", "another").entries()


def test_a_missing_head_is_named(tmp_path: Path) -> None:
    register = filled(tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl.head").unlink()
    with pytest.raises(VerificationError, match="head is missing"):
        register.entries()


def test_a_line_that_was_never_finished_is_set_aside(tmp_path: Path) -> None:
    register = filled(tmp_path / "r.jsonl")
    whole = register.path.read_bytes()
    register.path.write_bytes(whole + lines(register)[4][:40])
    assert len(register.entries()) == 5
    register.append("counted", {"number": 5}, at_ms=AT)
    assert register.path.read_bytes().startswith(whole)
    assert [entry["body"]["number"] for entry in register.entries()] == [0, 1, 2, 3, 4, 5]


def test_what_is_decided_is_decided_on_everything_before(tmp_path: Path) -> None:
    register = filled(tmp_path / "r.jsonl", 2)

    def refuse(entries: Any) -> Any:
        assert len(entries) == 2
        raise LookupError

    before = register.path.read_bytes()
    with pytest.raises(LookupError):
        register.transact(refuse, at_ms=AT)
    assert register.path.read_bytes() == before
    assert register.transact(lambda _: [], at_ms=AT) == []


def write_many(path: Path, writer: int) -> None:
    register = Register(path, "demo")
    for number in range(25):
        register.append("counted", {"writer": writer, "number": number}, at_ms=AT)


def test_writers_at_once_keep_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    entries = Register(path, "demo").entries()
    assert len(entries) == 75
    for writer in range(3):
        assert [e["body"]["number"] for e in entries if e["body"]["writer"] == writer] == list(range(25))


def test_a_killed_writer_leaves_a_register_that_can_be_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    code = (
        "import sys, itertools\nfrom pathlib import Path\nfrom meta_eval.evidence.register import Register\n"
        f"register = Register(Path({str(path)!r}), 'demo')\n"
        "for number in itertools.count():\n"
        f"    register.append('counted', {{'number': number}}, at_ms={AT})\n"
        "    print(number, flush=True)\n"
    )
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(20)]
        process.kill()
        process.wait()
        process.stdout.close()
        assert len(acknowledged) == 20
        entries = Register(path, "demo").entries()
        assert len(entries) >= 20
        path.unlink()
        path.with_name("r.jsonl.head").unlink()


BODIES = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9)), min_size=2, max_size=8)


@settings(max_examples=80, deadline=None)
@given(bodies=BODIES, data=st.data())
def test_no_single_change_of_a_chain_goes_unnamed(bodies: list[dict[str, int]], data: st.DataObject) -> None:
    entries: list[dict[str, Any]] = []
    for number, body in enumerate(bodies, start=1):
        previous = entries[-1]["digest"] if entries else genesis("demo")
        entries.append(sealed_entry(seq=number, at_ms=AT, event="e", body=body, previous=previous))
    assert checked(entries, "demo") == entries
    place = data.draw(st.integers(0, len(entries) - 2))
    change = data.draw(st.sampled_from(["remove", "repeat", "swap", "edit"]))
    broken = list(entries)
    if change == "remove":
        broken.pop(place)
    elif change == "repeat":
        broken.insert(place, broken[place])
    elif change == "swap":
        broken[place], broken[place + 1] = broken[place + 1], broken[place]
    else:
        broken[place] = {**broken[place], "body": {**broken[place]["body"], "z": 1}}
    with pytest.raises(VerificationError) as refused:
        checked(broken, "demo")
    assert refused.value.pointer.strip("/").isdigit()
