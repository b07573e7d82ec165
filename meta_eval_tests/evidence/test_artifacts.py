"""Artifacts are read strictly: known keys of known types, this version, and a digest that is the contents'."""

from __future__ import annotations

from typing import Any

import pytest

from meta_eval.evidence.artifacts import (
    KEYS,
    Blocker,
    blockers_of,
    digest_of,
    made_at_ms,
    merged,
    named_inputs,
    parsed_artifact,
    sealed,
)
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.errors import VerificationError

SHA = "0" * 64


def artifact(**changes: Any) -> dict[str, Any]:
    made = sealed(
        kind="a-kind",
        environment="production",
        round_name="spring",
        status="ready",
        blockers=[],
        policy_digest=SHA,
        made_at_ms=0,
        inputs={"log": {"receipt": SHA}, "labels": {"digest": SHA}},
        result={"count": 1},
        replay={"rows": [1]},
        authority={"permitsNothing": True},
    )
    changed = {key: value for key, value in (made | changes).items() if value is not ...}
    return changed | {"digest": digest_of(changed)} if "digest" not in changes else changed


def refused(value: Any) -> VerificationError:
    with pytest.raises(VerificationError) as caught:
        parsed_artifact(value, source="a file")
    return caught.value


def test_a_sealed_artifact_has_exactly_the_keys_and_its_own_digest() -> None:
    made = artifact()
    assert set(made) == set(KEYS)
    assert made["digest"] == digest({key: value for key, value in made.items() if key != "digest"})
    assert parsed_artifact(made, source="a file") == made
    assert (made["madeAt"], made_at_ms(made)) == ("1970-01-01T00:00:00.000Z", 0)


@pytest.mark.parametrize(("environment", "evidence"), [("production",) * 2, ("rehearsal",) * 2, (None, "unattested")])
def test_the_class_of_evidence_follows_the_environment(environment: str | None, evidence: str) -> None:
    made = sealed(
        kind="k",
        environment=environment,
        round_name=None,
        status="ready",
        blockers=[],
        policy_digest=SHA,
        made_at_ms=0,
        inputs={},
        result={},
        replay={},
        authority={},
    )
    assert made["evidenceClass"] == evidence


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_missing_key_is_named(key: str) -> None:
    if key == "artifact":
        assert refused(artifact(artifact=...)).rule == "not an artifact of meta_eval"
    else:
        made = artifact()
        del made[key]
        error = refused(made)
        assert (error.rule, error.pointer) == ("a missing key", f"/{key}")


def test_an_unknown_key_is_named_unless_it_could_tell_something() -> None:
    assert refused(artifact(extra=1)).pointer == "/extra"
    assert "visitor" not in str(refused(artifact(**{"visitor@example.org": 1})))


@pytest.mark.parametrize("key", sorted(KEYS.keys() - {"digest"}))
def test_a_value_of_another_type_is_refused_at_its_key(key: str) -> None:
    for wrong in (True, 1.5, ["x"] if KEYS[key] is not list else {"x": 1}):
        assert refused(artifact(**{key: wrong})).pointer == f"/{key}"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"version": 2}, "/version"),
        ({"digest": SHA}, "/digest"),
        ({"digest": ""}, "/digest"),
        ({"madeAt": "1970-01-01T00:00:00Z"}, "/madeAt"),
        ({"madeAt": "1970-01-01T01:00:00.000+01:00"}, "/madeAt"),
        ({"madeAt": "yesterday"}, "/madeAt"),
        ({"inputs": {"log": {"receipt": "canary words"}}}, "/inputs"),
        ({"inputs": {"log": {"receipt": SHA, "digest": SHA}}}, "/inputs"),
        ({"inputs": {"log": {"note": SHA}}}, "/inputs"),
        ({"inputs": {"log": {}}}, "/inputs"),
        ({"inputs": {"log": SHA}}, "/inputs"),
        ({"inputs": {"log": {"receipt": SHA.upper() + "A"}}}, "/inputs"),
    ],
)
def test_what_is_not_as_written_is_refused_where_it_is(changes: dict[str, Any], pointer: str) -> None:
    error = refused(artifact(**changes))
    assert error.pointer == pointer
    assert "canary" not in str(error)


@pytest.mark.parametrize("value", [None, [], "x", 1, {}, {"version": 1}])
def test_what_is_no_artifact_is_refused(value: Any) -> None:
    assert refused(value).rule == "not an artifact of meta_eval"


def test_an_artifact_of_another_kind_than_is_due_is_refused() -> None:
    with pytest.raises(VerificationError, match="due here"):
        parsed_artifact(artifact(), source="a file", kind="another-kind")
    assert parsed_artifact(artifact(), source="a file", kind="a-kind")


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    assert refused(artifact() | {"result": {"x": 2**60}}).rule == "not a value of canonical JSON"


def test_blockers_of_one_rule_and_place_are_added_up_in_one_order() -> None:
    blockers = [Blocker("b", "x", 2), Blocker("a", "y"), Blocker("b", "x", 3), Blocker("a", "x")]
    assert merged(blockers) == [Blocker("a", "x", 1), Blocker("a", "y", 1), Blocker("b", "x", 5)]
    made = artifact(blockers=[blocker.document for blocker in merged(blockers)])
    assert blockers_of(made) == merged(blockers)


def test_inputs_are_those_that_are_named_and_no_other() -> None:
    inputs = {"log": {"receipt": SHA}, "stranger": {"receipt": SHA}}
    assert named_inputs(inputs, {"log": "receipt"}) == {"log": {"receipt": SHA}}
    assert named_inputs(inputs, {"log": "receipt", "x": "digest"}, optional=frozenset({"x"})) == {
        "log": {"receipt": SHA}
    }
    for due in ({"x": "digest"}, {"log": "digest"}):
        with pytest.raises(KeyError):
            named_inputs(inputs, due)
