"""The declaration of a study: who holds which role, which arms are compared, on which corpus and configuration.

Source: the usefulness contract, roles. It comes before any packet, and every later record is checked against it. No
code holds two roles, over every pair of roles, two scorers and two authors included.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import read_projection
from meta_eval.lanes.usefulness import shapes
from meta_eval.lanes.usefulness.custody import order_blockers
from meta_eval.lanes.usefulness.hiding import hidden_shape, read_hidden
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage

KIND = "usefulness-study"
SINGLE_ROLES = ("runner", "adjudicator", "owner", "implementer")
SCORERS = 2
AUTHORITY = {
    "permitsOpening": False,
    "permitsPublication": False,
    "statement": "Who does what, said before any packet exists. It opens nothing and measures nothing.",
}


def declare(document: object, state: Row, *, receipt: str, key: bytes, setting: Setting) -> Artifact:
    """The declared study, ready or blocked.

    Args:
        document: the parsed declaration.
        state: how far the study's register says it has come.
        key: the study's key, under which private texts are kept as digests.
    """
    _, kept = read_hidden(document, shapes.study(), key, subject="study")
    return STAGE.make({"study": kept, "register": state}, {"study": {"receipt": receipt}}, setting)


def extract(study: Artifact) -> Row:
    """What later stages keep of a study."""
    declared = study["replay"]["study"]
    return {
        "digest": study["digest"],
        "status": study["status"],
        "environment": study["environment"],
        "policyDigest": study["policyDigest"],
        **{name: declared.get(name) for name in ("roles", "corpusDigest", "activation", "arms")},
    }


def study_blockers(replay: Row, inputs: Inputs, setting: Setting) -> list[Blocker]:
    """The study that a later stage belongs to must be ready, the one named, and under the policy in force."""
    study = replay["study"]
    blockers = [] if study["status"] == "ready" else [Blocker("study-not-declared", "study")]
    if study["digest"] != inputs["study"]["digest"]:
        blockers.append(Blocker("study-differs", "study"))
    if study["policyDigest"] != setting.policy.digest:
        blockers.append(Blocker("policy-changed-after-declaration", "study"))
    if replay["register"]["declared"] not in (None, study["digest"]):
        blockers.append(Blocker("differs-from-register", "declared"))
    return blockers


def set_ids(study: Row) -> list[str]:
    """The sets of a ready study, in order of id."""
    return sorted(author["setId"] for author in study["roles"]["authors"])


def arm_of(study: Row, role: str) -> Row:
    """The baseline or the candidate arm of a ready study."""
    arm: Row = next(arm for arm in study["arms"] if arm["role"] == role)
    return arm


def scorer_codes(study: Row) -> list[str]:
    """The two scorers' codes, in the order declared."""
    return [scorer["code"] for scorer in study["roles"]["scorers"]]


def codes_of(study: Row) -> list[str]:
    """The code of everybody who holds a role in a ready study."""
    return [str(code) for _, code, _ in _holders(study["roles"])]


def _judge(replay: Row, _: Inputs, setting: Setting) -> Judged:
    reading = read_projection(replay["study"], hidden_shape(shapes.study()), subject="study")
    declared = reading.value or {}
    blockers = [
        *reading.blockers,
        *order_blockers(replay["register"], event="declared", after=(), made_at=setting.made_at),
        *_role_blockers(declared.get("roles") or {}, setting),
        *_arm_blockers([arm for arm in declared.get("arms") or [] if arm is not None]),
    ]
    proxies = [code for _, code, kind in _holders(declared.get("roles") or {}) if code and kind == "agent-proxy"]
    environment = declared.get("environment")
    return Judged(environment, blockers, {"agentProxies": len(proxies), "sets": setting.policy.sets})


def _holders(roles: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    """Every holder of a role: the role, the code and the kind."""
    found = [("author", person) for person in roles.get("authors") or []]
    found += [("scorer", person) for person in roles.get("scorers") or []]
    found += [(role, roles.get(role)) for role in SINGLE_ROLES]
    return [(role, person.get("code"), person.get("kind")) for role, person in found if person is not None]


def _role_blockers(roles: dict[str, Any], setting: Setting) -> list[Blocker]:
    """The right number of each role, one author a set, and no code in two roles."""
    blockers = []
    authors = [author for author in roles.get("authors") or [] if author is not None]
    if roles.get("authors") is not None and len(authors) != setting.policy.sets:
        blockers.append(Blocker("not-one-author-a-set", "study.roles.authors", len(authors)))
    sets = Counter(author["setId"] for author in authors if author.get("setId"))
    if repeated := sum(count > 1 for count in sets.values()):
        blockers.append(Blocker("set-with-two-authors", "study.roles.authors", repeated))
    if roles.get("scorers") is not None and len(roles["scorers"]) != SCORERS:
        blockers.append(Blocker("not-two-scorers", "study.roles.scorers", len(roles["scorers"])))
    for (role, code, _), (other_role, other_code, _) in itertools.combinations(_holders(roles), 2):
        if code is not None and code == other_code:
            blockers.append(Blocker("role-shared", f"{role} and {other_role}"))
    return blockers


def _arm_blockers(arms: list[Row]) -> list[Blocker]:
    """Two arms under two ids, a deterministic baseline and a candidate."""
    roles = sorted(arm["role"] for arm in arms if arm.get("role"))
    blockers = [] if roles == ["baseline", "candidate"] else [Blocker("not-a-baseline-and-a-candidate", "study.arms")]
    if len({arm.get("armId") for arm in arms}) != len(arms):
        blockers.append(Blocker("arm-repeated", "study.arms"))
    if any(arm.get("role") == "baseline" and arm.get("kind") not in ("deterministic", None) for arm in arms):
        blockers.append(Blocker("baseline-not-deterministic", "study.arms"))
    return blockers


STAGE = Stage(KIND, AUTHORITY, _judge)
