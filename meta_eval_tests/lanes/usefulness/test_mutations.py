"""Every artifact of the lane is rebuilt from what it keeps: each leaf changed, removed, added, swapped; all refused.

The outer digest is recomputed each time. Alike rows are walked by their fullest one. Nothing survives: `basis` in each
result binds the replay, the inputs, the study and the instant, whether a figure depends on them or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from meta_eval.evidence import replay
from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.usefulness import policy
from meta_eval.lanes.usefulness.studies import REBUILDS
from meta_eval_tests.lanes.usefulness.world import SMALL_POLICY, facts_of, small
from meta_eval_tests.valid_world import deep

READY = [
    "declare",
    "seal set-a",
    "freeze",
    "preflight",
    "open set-a",
    "record-runs",
    "blind",
    "score 1",
    "adjudicate",
    "unblind",
    "accept",
    "publish",
]


def blocked() -> dict[str, Artifact]:
    w = small()
    broken = w.copy("set-a")
    broken["questions"][0] |= {"clauses": [], "email": "visitor@example.org"}
    scores = w.copy("scores 1")
    scores["scorerCode"] = "Jan Jansen"
    return {
        "a blocked packet": w.sealed("set-a", broken),
        "a refused opening": w.opened(facts=facts_of(w.documents["set-a"], mode="0640")),
        "a blocked score": w.scored(1, scores),
        "a blocked acceptance": w.accepted(entries=w.entries("unblind")),
        "a refused export": w.published(unfaithful=["runs"]),
    }


@pytest.fixture(autouse=True)
def _small_policy_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policy.KNOWN_POLICIES, SMALL_POLICY.digest, SMALL_POLICY)


BLOCKED = (
    "a blocked packet",
    "a refused opening",
    "a blocked score",
    "a blocked acceptance",
    "a refused export",
)


def pointers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part; of entries that are alike, in a list or under ids, the fullest stands for the others."""
    yield path
    if isinstance(node, dict):
        alike = len(node) > 1 and all(isinstance(value, dict) for value in node.values())
        alike = alike and len({tuple(value) for value in node.values()}) == 1
        for key in [max(node, key=lambda name: len(str(node[name])))] if alike else node:
            yield from pointers(node[key], (*path, key))
    elif isinstance(node, list) and node:
        fullest = max(range(len(node)), key=lambda index: len(str(node[index])))
        yield from pointers(node[fullest], (*path, fullest))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, None]
    if isinstance(value, str):
        likely = {"ready": "blocked", "rehearsal": "production", "useful": "not-useful", "rehearsed": "passed"}
        return [likely.get(value, f"{value[:-1]}{'0' if value[-1:] != '0' else '1'}"), 7]
    return ["x", 0] if value is None else [type(value)()] if value else [[0] if isinstance(value, list) else {"x": 0}]


def mutations(artifact: Artifact) -> Iterator[Artifact]:
    paths = [path for path in pointers(artifact) if path not in ((), ("digest",))]
    for path in paths:
        value = at(artifact, path)
        # Deep down a value of another type is one more wrong value; near the top it could be taken for a default.
        for other in others(value)[: 2 if len(path) < 4 else 1]:
            yield edited(artifact, path[:-1], lambda parent, key=path[-1], new=other: parent.__setitem__(key, new))
        yield edited(artifact, path[:-1], lambda parent, key=path[-1]: parent.pop(key))
        if isinstance(value, dict):
            yield edited(artifact, path, lambda node: node.update(extra="canary"))
        if isinstance(value, list) and len(value) > 1 and value[0] != value[-1]:
            yield edited(artifact, path, lambda node: node.reverse())
            yield edited(artifact, path, lambda node: node.append(node[0]))


def edited(artifact: Artifact, path: tuple[Any, ...], edit: Any) -> Artifact:
    """The artifact with one part edited; only what leads to it is copied."""
    copied: Any = dict(artifact)
    node = copied
    for key in path:
        node[key] = dict(node[key]) if isinstance(node[key], dict) else list(node[key])
        node = node[key]
    edit(node)
    return {**copied, "digest": digest_of(copied)}


def survivors(artifact: Artifact) -> tuple[int, int]:
    tried = survived = 0
    for mutated in mutations(artifact):
        if mutated["digest"] == artifact["digest"]:
            continue
        tried += 1
        try:
            replay.verified(mutated, REBUILDS)
        except VerificationError:
            continue
        survived += 1
    return tried, survived


@pytest.mark.parametrize("name", READY)
def test_a_forged_artifact_does_not_verify(name: str) -> None:
    artifact = deep(small().made[name])
    assert replay.verified(artifact, REBUILDS) == artifact
    tried, survived = survivors(artifact)
    print(f"{artifact['artifact']}: {tried} mutations, {survived} survived")  # noqa: T201 - the count is to be seen
    assert tried > 80
    assert survived == 0


@pytest.mark.parametrize("name", BLOCKED)
def test_a_forged_artifact_that_is_blocked_does_not_verify(name: str) -> None:
    artifact = deep(blocked()[name])
    assert artifact["status"] == "blocked"
    assert replay.verified(artifact, REBUILDS) == artifact
    tried, survived = survivors(artifact)
    print(f"{name}: {tried} mutations, {survived} survived")  # noqa: T201 - the count is to be seen
    assert tried > 40
    assert survived == 0


def test_what_was_refused_is_in_no_artifact() -> None:
    kept = str(blocked())
    assert "visitor@example.org" not in kept
    assert "Jansen" not in kept
