"""A valid round's documents, ready to be broken in one named way, and the tables of such breaks.

A break is a function that edits `Papers` in place, registered with the exact blockers that it must earn:

    @BREAKS(("case-observed-twice", "case_coverage", 1))
    def a_case_is_observed_twice(papers): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production.policy import CURRENT_POLICY, Policy
from meta_eval.lanes.production.query_log import OUTCOMES, LogScan, outcomes_of
from meta_eval_tests.valid_world import World, deep, sha

OBSERVATION, REVIEW = "observations.observations[]", "reviews.reviews[]"
OTHER_POLICY = replace(CURRENT_POLICY, version=2, freshness_days=34)
"""A policy that might come after the one in force; nobody has put it in force."""

SMALL_POLICY = replace(
    CURRENT_POLICY, version=99, least_cases=6, least_cases_per_class=2, least_reviewed_citations=3, least_reviewers=1
)
"""The rules of the lane with thresholds that six cases meet."""

Found = tuple[str, str, int]


@dataclass(frozen=True)
class Whole:
    """Everything of one valid round, made once a process. Take copies."""

    world: World
    export: dict[str, Any]
    prepared: Artifact
    labels: dict[str, Any]
    frozen: Artifact
    kit: Artifact
    observations: dict[str, Any]
    reviews: dict[str, Any]
    bundle: Artifact
    verdict: Artifact


@lru_cache(maxsize=32)
def whole(
    cases: int = 60,
    answerable: int = 40,
    environment: str = "production",
    overlap: int = 0,
    policy: Policy = CURRENT_POLICY,
) -> Whole:
    world = World(cases=cases, answerable=answerable, environment=environment, overlap=overlap, policy=policy)
    frozen, kit, observations, reviews = world.frozen(), world.kit(), world.observations(), world.reviews()
    bundle = world.assembled(frozen=frozen, kit=kit, observations=observations, reviews=reviews)
    return Whole(
        world,
        world.export(),
        world.prepared(),
        world.labels(),
        frozen,
        kit,
        observations,
        reviews,
        bundle,
        world.evaluated(bundle, frozen=frozen),
    )


@dataclass
class Papers:
    """What a bundle is assembled from, each paper a copy of a valid one."""

    world: World
    frozen: Artifact
    observations: Any
    reviews: Any
    evidence_reference: Any
    release: Any
    kit: Artifact | None
    operator_code: Any = "OPS-7Q"
    policy: Policy = CURRENT_POLICY

    def observed(self, n: int) -> dict[str, Any]:
        """The observation of case number `n`."""
        return next(row for row in self.observations["observations"] if row["caseId"] == self.world.case_id(n))

    def reviewed(self, n: int) -> dict[str, Any]:
        """The (first) review of case number `n`."""
        return next(row for row in self.reviews["reviews"] if row["caseId"] == self.world.case_id(n))

    def assembled(self, **given: Any) -> Artifact:
        return self.world.assembled(
            frozen=self.frozen,
            observations=self.observations,
            reviews=self.reviews,
            evidence_reference=self.evidence_reference,
            release=self.release,
            kit=self.kit,
            operator_code=self.operator_code,
            policy=self.policy,
            **given,
        )


def papers(**size: Any) -> Papers:
    """Fresh copies of a valid round's papers."""
    made = whole(**size)
    world = made.world
    return Papers(
        world,
        made.frozen,
        deep(made.observations),
        deep(made.reviews),
        world.evidence_reference(),
        world.release(),
        made.kit,
    )


class Breaks:
    """A table of breaks, each with the blockers that it must earn, as parameters for one test."""

    def __init__(self) -> None:
        self.params: list[Any] = []

    def __call__(self, *expected: Found) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        def register(edit: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self.params.append(pytest.param(edit, set(expected), id=edit.__name__))
            return edit

        return register


def places(document: Any, path: str = "") -> Iterable[tuple[str, dict[str, Any]]]:
    """Each object in a document, the first of a list only, with the place that a blocker gives it."""
    if isinstance(document, dict):
        yield path, document
        for key, value in document.items():
            yield from places(value, f"{path}.{key}")
    elif isinstance(document, list) and document:
        # The longest entry is the one with all its parts.
        yield from places(max(document, key=lambda entry: len(str(entry))), f"{path}[]")


@dataclass(frozen=True)
class Scored:
    """The last three artifacts of a round whose labels or rows differ from the valid ones."""

    frozen: Artifact
    bundle: Artifact
    verdict: Artifact


def scored(
    world: World,
    *,
    labels: Callable[[Any], Any] = lambda _: None,
    observations: Callable[[Any], Any] = lambda _: None,
    decide: Callable[[str, str, str, str], bool] = lambda *_: True,
) -> Scored:
    """A round with edited labels and observations, each emitted citation decided by `decide`.

    Args:
        decide: given the reviewer's code, the case id, the claim id and the citation.
    """
    labelled = world.labels()
    labels(labelled)
    frozen = world.frozen(labelled)
    observed = world.observations()
    observations(observed)
    reviewed = world.reviews(observed)
    for document in (observed, reviewed):
        document["datasetDigest"] = frozen["result"]["datasetDigest"]
    for review in reviewed["reviews"]:
        for entry in review["decisions"]:
            entry["supported"] = decide(review["reviewerCode"], review["caseId"], entry["claimId"], entry["citation"])
    bundle = world.assembled(frozen=frozen, observations=observed, reviews=reviewed, kit=None)
    return Scored(frozen, bundle, world.evaluated(bundle, frozen=frozen))


def scan_of(letters: str, *, newest: int | None = None) -> LogScan:
    """A scanned log told by the outcome letters of its rows, such as `e50m3`."""
    outcomes = outcomes_of(letters)
    counts = np.bincount(outcomes, minlength=len(OUTCOMES)).tolist()
    return LogScan(
        receipt=sha("log"),
        byte_count=1000,
        row_count=len(outcomes),
        outcomes=outcomes,
        counts=dict(zip(OUTCOMES, counts, strict=True)),
        newest_asked_at_ms=newest,
    )
