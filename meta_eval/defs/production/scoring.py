"""When a round is scored: for each new ready bundle, and each day while its verdict depends on the day. Pure.

Source: the orchestration contract. Traces age, so a verdict of yesterday is judged again. A verdict that can no longer
change by the mere passing of time is left alone, so that a finished round does not fail a run every day.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_MAY_PASS_WITH_TIME = {"trace-in-the-future", "verdict-in-the-future"}


@dataclass(frozen=True)
class Scores:
    """By round, the run key under which to score it; what to tell; the next cursor."""

    run_keys: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    cursor: str = "{}"


def new_bundles(
    newest: Mapping[str, str],
    cursor: str | None,
    *,
    artifact_of: Callable[[str], Mapping[str, Any] | None],
    asked: Callable[[str, str], bool],
) -> Scores:
    """The rounds whose newest bundle is ready and was not scored yet.

    Args:
        newest: by round, the file name of its newest bundle.
        artifact_of: a round's newest bundle; None where it cannot be read.
        asked: whether a round's bundle of this digest was scored before, or a run of its key asked for.
    """
    known, scores, seen = _remembered(cursor), Scores(), {}
    for round_name, name in sorted(newest.items()):
        if known.get(round_name) == name:
            seen[round_name] = name
            continue
        artifact = artifact_of(round_name)
        if artifact is None:
            scores.messages.append(f"{round_name}: its newest bundle cannot be read; verify the round")
            continue
        seen[round_name] = name
        if artifact["status"] != "ready":
            scores.messages.append(f"{round_name}: its newest bundle is {artifact['status']}, so it is not scored")
            continue
        if asked(round_name, artifact["digest"]):
            scores.messages.append(f"{round_name}: its newest bundle was scored already")
        else:
            scores.run_keys[round_name] = run_key(round_name, artifact["digest"])
    return Scores(scores.run_keys, scores.messages, json.dumps(seen, separators=(",", ":")))


def run_key(round_name: str, bundle_digest: str) -> str:
    """Under which key a round's bundle is scored: once for each bundle."""
    return f"{round_name}:assembled_bundle:{bundle_digest}"


def depends_on_the_day(verdict: Mapping[str, Any]) -> bool:
    """Whether another day can change this verdict."""
    if verdict["status"] != "blocked":
        return True
    return any(entry.get("code") in _MAY_PASS_WITH_TIME for entry in verdict["blockers"])


def due_readiness(
    verdicts: Mapping[str, str],
    judged: Mapping[str, str],
    cursor: str | None,
    *,
    verdict_of: Callable[[str], Mapping[str, Any] | None],
) -> Scores:
    """The rounds whose newest verdict is of production and is newer than their newest readiness.

    Args:
        verdicts, judged: by round, the file name of its newest verdict and readiness; names begin with their instant.
        cursor: that of `Scores.cursor`: the verdicts that were looked at before.
        verdict_of: a round's newest verdict; None where it cannot be read.
    """
    known, scores, seen = _remembered(cursor), Scores(), {}
    for round_name, name in sorted(verdicts.items()):
        seen[round_name] = name
        if known.get(round_name) == name or _stamp(judged.get(round_name, "")) >= _stamp(name):
            continue
        verdict = verdict_of(round_name)
        # One that cannot be read is asked about: the stage names the fault. A rehearsal is never asked about.
        if verdict is None or verdict.get("environment") == "production":
            scores.run_keys[round_name] = f"{round_name}:readiness:{name}"
    return Scores(scores.run_keys, [], json.dumps(seen, separators=(",", ":")))


_READINESS_PART = "readiness of"
"""Where the sensor's cursor keeps the verdicts that it looked at; no round can have a name with a space."""


def readiness_cursor(cursor: str | None) -> str:
    """The part of the sensor's cursor that `due_readiness` gave."""
    return json.dumps(_remembered(cursor).get(_READINESS_PART, {}))


def joined_cursor(bundles: str, verdicts: str) -> str:
    """One cursor of both parts."""
    part = _remembered(verdicts)
    whole: dict[str, Any] = {**_remembered(bundles), **({_READINESS_PART: part} if part else {})}
    return json.dumps(whole, separators=(",", ":"))


def _stamp(file_name: str) -> str:
    return file_name.partition("-")[0]


def _remembered(cursor: str | None) -> dict[str, Any]:
    try:
        value = json.loads(cursor or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
