"""Replay: an artifact is believed only after it has been rebuilt from what it keeps, and compared whole.

Source: the evidence contract. `verified` follows these steps and returns the artifact or raises:

1. read it strictly: exactly the known keys, their types, this version;
2. the digest must be that of the contents;
3. the kind must be one that a lane can rebuild;
4. rebuild the whole artifact from its replay and inputs, at its own recorded time;
5. compare the digests of both; where they differ, the first difference is named by JSON pointer.

`load_verified` is how a stage reads what an earlier one wrote, whatever an orchestrator recorded about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meta_eval.evidence.artifacts import Artifact, digest_of, parsed_artifact
from meta_eval.evidence.canonical import Readable, read_document
from meta_eval.evidence.errors import VerificationError

Rebuild = Callable[[Artifact], Artifact]


def verified(
    value: object, rebuilds: Mapping[str, Rebuild], *, source: str = "artifact", kind: str | None = None
) -> Artifact:
    """The artifact, after all five steps.

    Raises:
        VerificationError: names the step that failed and where.
    """
    artifact = parsed_artifact(value, source=source, kind=kind)
    rebuild = rebuilds.get(artifact["artifact"])
    if rebuild is None:
        raise VerificationError(source, "a kind of artifact that no lane can rebuild", "/artifact")
    try:
        rebuilt = rebuild(artifact)
    except VerificationError:
        raise
    except Exception:  # a forged replay can break a stage in any way; none of them may be taken for success
        raise VerificationError(source, "cannot be rebuilt from its replay", "/replay") from None
    if digest_of(rebuilt) != artifact["digest"]:
        pointer = first_difference(_contents(artifact), _contents(rebuilt)) or "/digest"
        raise VerificationError(source, "differs from what its replay rebuilds", pointer)
    return artifact


def _contents(artifact: Artifact) -> dict[str, Any]:
    return {key: value for key, value in artifact.items() if key != "digest"}


def load_verified(path: Readable, rebuilds: Mapping[str, Rebuild], *, kind: str | None = None) -> Artifact:
    """Read an artifact from a file and verify it.

    Raises:
        InputError: the file cannot be read as JSON.
        VerificationError: it is not an artifact, or not an honest one.
    """
    value, _ = read_document(path)
    return verified(value, rebuilds, source=str(path), kind=kind)


def first_difference(left: Any, right: Any, pointer: str = "") -> str | None:
    """The JSON pointer of the first place where two JSON values differ, types included, or None."""
    if type(left) is not type(right) and not (_is_number(left) and _is_number(right)):
        return pointer or "/"
    if isinstance(left, dict):
        for key in sorted(left.keys() | right.keys()):
            here = f"{pointer}/{_escaped(key)}"
            if key not in left or key not in right:
                return here
            if (found := first_difference(left[key], right[key], here)) is not None:
                return found
        return None
    if isinstance(left, list):
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            if (found := first_difference(one, other, f"{pointer}/{index}")) is not None:
                return found
        return None if len(left) == len(right) else f"{pointer}/{min(len(left), len(right))}"
    return None if left == right else pointer or "/"


def _is_number(value: Any) -> bool:
    # 1 and 1.0 are one number in canonical JSON; true is not a number at all.
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _escaped(key: str) -> str:
    # Only our own keys are named; a forged one could carry a value that must not be echoed.
    shown = key if key.replace("-", "_").isidentifier() else "(a key that is no identifier)"
    return shown.replace("~", "~0").replace("/", "~1")
