"""Artifacts: what every stage leaves behind, whether it is ready or blocked.

Source: the evidence contract. An artifact is one JSON object with exactly the keys of `KEYS`. `digest` is over all
the others. `inputs` names by receipt or digest what it was made from, `replay` keeps the privacy-safe projection
from which the whole artifact can be rebuilt, and `authority` says what it does not permit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.errors import VerificationError

Artifact = dict[str, Any]

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "artifact": str,
    "version": int,
    "evidenceClass": str,
    "environment": (str, type(None)),
    "round": (str, type(None)),
    "status": str,
    "blockers": list,
    "policyDigest": str,
    "madeAt": str,
    "inputs": dict,
    "result": dict,
    "replay": dict,
    "authority": dict,
    "digest": str,
}

ENVIRONMENTS = ("production", "rehearsal")
_SHA256 = re.compile(r"[0-9a-f]{64}")
EVIDENCE_CLASSES = {"production": "production", "rehearsal": "rehearsal", None: "unattested"}


@dataclass(frozen=True, order=True)
class Blocker:
    """Why a stage refused: the rule (`code`), what breaks it (`subject`) and how often. Never the value itself."""

    code: str
    subject: str
    count: int = 1

    @property
    def document(self) -> dict[str, Any]:
        return {"code": self.code, "subject": self.subject, "count": self.count}


def merged(blockers: Iterable[Blocker]) -> list[Blocker]:
    """Blockers in one fixed order, those of one rule and subject added up."""
    totals: dict[tuple[str, str], int] = {}
    for blocker in blockers:
        totals[blocker.code, blocker.subject] = totals.get((blocker.code, blocker.subject), 0) + blocker.count
    return [Blocker(code, subject, count) for (code, subject), count in sorted(totals.items())]


def at_least(found: int, least: int, *, code: str, subject: str) -> list[Blocker]:
    """A blocker with the number found where it is below the least that is due."""
    return [] if found >= least else [Blocker(code, subject, found)]


def sealed(
    *,
    kind: str,
    environment: str | None,
    round_name: str | None,
    status: str,
    blockers: Iterable[Blocker],
    policy_digest: str,
    made_at_ms: int,
    inputs: Mapping[str, Mapping[str, str]],
    result: Mapping[str, Any],
    replay: Mapping[str, Any],
    authority: Mapping[str, Any],
    evidence_class: str | None = None,
) -> Artifact:
    """A whole artifact with its digest. The stage has decided everything that is in it."""
    body: Artifact = {
        "artifact": kind,
        "version": 1,
        "evidenceClass": evidence_class or EVIDENCE_CLASSES[environment],
        "environment": environment,
        "round": round_name,
        "status": status,
        "blockers": [blocker.document for blocker in merged(blockers)],
        "policyDigest": policy_digest,
        "madeAt": written_instant(made_at_ms),
        "inputs": {name: dict(value) for name, value in inputs.items()},
        "result": dict(result),
        "replay": dict(replay),
        "authority": dict(authority),
    }
    return {**body, "digest": digest(body)}


def named_inputs(
    inputs: Mapping[str, Mapping[str, str]], due: Mapping[str, str], *, optional: frozenset[str] = frozenset()
) -> dict[str, dict[str, str]]:
    """The inputs of these names and no other, each a receipt or a digest as `due` says.

    Raises:
        KeyError: one that is not optional is missing.
    """
    return {name: {kind: inputs[name][kind]} for name, kind in due.items() if name in inputs or name not in optional}


def digest_of(artifact: Mapping[str, Any]) -> str:
    """The digest that an artifact's contents have, whatever its `digest` says."""
    return digest({key: value for key, value in artifact.items() if key != "digest"})


def parsed_artifact(value: object, *, source: str, kind: str | None = None) -> Artifact:
    """The artifact that a JSON value is, read strictly. `source` names it in errors.

    Raises:
        VerificationError: not an object, an unknown or missing key, a value of another type, another version or
            kind, or a digest that is not the contents'.
    """
    if not isinstance(value, dict) or "artifact" not in value:
        raise VerificationError(source, "not an artifact of meta_eval")
    for key in sorted(KEYS.keys() - value.keys()):
        raise VerificationError(source, "a missing key", f"/{key}")
    for key in sorted(value.keys() - KEYS.keys()):
        shown = key if key.isidentifier() else "(a key that is no identifier)"
        raise VerificationError(source, "an unknown key", f"/{shown}")
    for key, kinds in KEYS.items():
        if not isinstance(value[key], kinds) or isinstance(value[key], bool):
            raise VerificationError(source, "a value of the wrong type", f"/{key}")
    if value["version"] != 1:
        raise VerificationError(source, "a version that this reader does not know", "/version")
    if kind is not None and value["artifact"] != kind:
        raise VerificationError(source, f"not the artifact that is due here ({kind})", "/artifact")
    if not all(map(_is_input, value["inputs"].values())):
        raise VerificationError(source, "an input that is not one receipt or digest", "/inputs")
    if not _is_written(value["madeAt"]):
        raise VerificationError(source, "not an instant as meta_eval writes it", "/madeAt")
    try:
        actual = digest_of(value)
    except ValueError:
        raise VerificationError(source, "not a value of canonical JSON") from None
    if actual != value["digest"]:
        raise VerificationError(source, "the digest is not that of the contents", "/digest")
    return value


def _is_input(entry: object) -> bool:
    if not isinstance(entry, dict) or len(entry) != 1 or not entry.keys() <= {"receipt", "digest"}:
        return False
    return all(isinstance(value, str) and _SHA256.fullmatch(value) for value in entry.values())


def _is_written(value: str) -> bool:
    ms = instant_ms(value)
    return ms is not None and written_instant(ms) == value


def made_at_ms(artifact: Mapping[str, Any]) -> int:
    """The instant at which an artifact was made, in milliseconds since the epoch."""
    ms = instant_ms(artifact["madeAt"])
    if ms is None:
        raise VerificationError(str(artifact.get("artifact")), "not an instant", "/madeAt")
    return ms


def blockers_of(artifact: Mapping[str, Any]) -> list[Blocker]:
    """The blockers that an artifact names."""
    return [Blocker(entry["code"], entry["subject"], entry["count"]) for entry in artifact["blockers"]]
