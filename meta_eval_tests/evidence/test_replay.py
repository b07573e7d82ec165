"""Verification: five steps, each of which stops what it is there to stop, and the first difference by its pointer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.evidence.artifacts import Artifact, digest_of, made_at_ms, sealed
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.replay import first_difference, load_verified, verified

SHA = "0" * 64


def summed(rows: list[int]) -> Artifact:
    return sealed(
        kind="sum",
        environment="production",
        round_name=None,
        status="ready",
        blockers=[],
        policy_digest=SHA,
        made_at_ms=0,
        inputs={},
        result={"sum": sum(rows)},
        replay={"rows": rows},
        authority={},
    )


def rebuild(artifact: Artifact) -> Artifact:
    assert made_at_ms(artifact) == 0
    return summed(artifact["replay"]["rows"])


REBUILDS = {"sum": rebuild}


def forged(**changes: Any) -> Artifact:
    made = summed([1, 2]) | changes
    return made | {"digest": digest_of(made)}


def refused(value: Any) -> VerificationError:
    with pytest.raises(VerificationError) as caught:
        verified(value, REBUILDS)
    return caught.value


def test_an_honest_artifact_is_returned() -> None:
    assert verified(summed([1, 2]), REBUILDS)["result"] == {"sum": 3}


def test_1_it_is_read_strictly() -> None:
    assert refused(forged(extra=1)).pointer == "/extra"


def test_2_the_digest_is_that_of_the_contents() -> None:
    assert refused(summed([1, 2]) | {"result": {"sum": 4}}).pointer == "/digest"


def test_3_the_kind_is_one_that_can_be_rebuilt() -> None:
    assert refused(forged(artifact="product")).pointer == "/artifact"


@pytest.mark.parametrize("replay", [{}, {"rows": None}, {"rows": ["canary"]}, {"rows": [[1]]}])
def test_4_a_replay_that_breaks_the_stage_is_refused_and_not_quoted(replay: Any) -> None:
    error = refused(forged(replay=replay))
    assert error.pointer == "/replay"
    assert "canary" not in str(error)
    assert error.__cause__ is None


def test_4_a_stage_that_says_itself_why_is_heard() -> None:
    def objecting(_: Artifact) -> Artifact:
        raise VerificationError("sum", "a reason of its own", "/replay/rows")

    with pytest.raises(VerificationError, match="a reason of its own"):
        verified(summed([1]), {"sum": objecting})


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"result": {"sum": 4}}, "/result/sum"),
        ({"result": {"sum": "3"}}, "/result/sum"),
        ({"result": {"sum": True}}, "/result/sum"),
        ({"result": {}}, "/result/sum"),
        ({"result": {"sum": 3, "more": 1}}, "/result/more"),
        ({"replay": {"rows": [1, 2], "note": "canary"}}, "/replay/note"),
        ({"status": "blocked"}, "/status"),
        ({"inputs": {"log": {"receipt": SHA}}}, "/inputs/log"),
        ({"authority": {"permitsRun": True}}, "/authority/permitsRun"),
        ({"blockers": [{"code": "x", "subject": "y", "count": 1}]}, "/blockers/0"),
    ],
)
def test_5_the_first_difference_is_named_by_pointer(changes: dict[str, Any], pointer: str) -> None:
    assert refused(forged(**changes)).pointer == pointer


def test_whole_numbers_of_json_are_one_number_however_written() -> None:
    assert verified(json.loads(json.dumps(forged(result={"sum": 3.0}))), REBUILDS)


def test_a_file_is_read_and_verified(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(summed([1, 2]), indent=3))
    assert load_verified(file, REBUILDS, kind="sum") == summed([1, 2])
    with pytest.raises(VerificationError, match="due here"):
        load_verified(file, REBUILDS, kind="product")
    file.write_text(json.dumps(forged(result={"sum": 9})))
    with pytest.raises(VerificationError, match=r"a\.json"):
        load_verified(file, REBUILDS)
    file.write_text("{")
    with pytest.raises(InputError):
        load_verified(file, REBUILDS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_there_is_a_difference_exactly_where_json_differs(left: Any, right: Any) -> None:
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (first_difference(left, right) is None) is same
    assert (first_difference(left, right) is None) is (first_difference(right, left) is None)


@pytest.mark.parametrize(
    ("left", "right", "pointer"),
    [
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "/a/b/1/c"),
        ([1, 2], [1, 2, 3], "/2"),
        ([1], {"0": 1}, "/"),
        ({"a": 1}, {"a": True}, "/a"),
        ({"visitor@example.org": 1}, {}, "/(a key that is no identifier)"),
    ],
)
def test_pointers_name_our_keys_and_echo_no_other(left: Any, right: Any, pointer: str) -> None:
    assert first_difference(left, right) == pointer
