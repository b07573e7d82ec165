"""What a look at the inboxes asks for: a pure function of the listing and of what was seen before.

Source: the orchestration contract. A file counts once it has stopped growing: its size and time are those of the last
look, or its time is a while ago. It is read whole only when size or time changed, and it is news only when its bytes
are new: a touched, renamed or re-saved file starts nothing. News asks for just the stages that it unlocks. File
times say when to look again, and never what is true.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from meta_eval.defs.production.listing import Found, Listing
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production import metrics
from meta_eval.lanes.production.rounds import INBOX
from meta_eval.lanes.production.stages import STAGES

QUIET_NS = 10_000_000_000
_INPUT_OF = {file: name for name, files in INBOX.items() for file in files}
_VERSION = 1


@dataclass(frozen=True)
class Seen:
    """An input at the last look: size and time, whether they had settled, and the last SHA-256 that was read."""

    size: int
    modified_ns: int
    settled: bool
    sha: str | None


Memory = dict[str, dict[str, Seen]]  # by round and input


@dataclass(frozen=True)
class Request:
    """Stages of a round to run: `news` is why, `read` is every input that they will read, each by SHA-256."""

    round: str
    stages: tuple[str, ...]
    news: Mapping[str, str]
    read: Mapping[str, str]
    run_key: str


@dataclass(frozen=True)
class Tick:
    """What one look comes to."""

    requests: list[Request] = field(default_factory=list)
    new_rounds: list[str] = field(default_factory=list)
    news: list[tuple[str, str, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    cursor: str = ""


@dataclass(frozen=True)
class World:
    """What a look may ask about.

    sha_of: a file's SHA-256; None where it changed meanwhile. Raises InputError where it cannot be read.
    ready: the stages of a round that have a ready artifact.
    times_asked: how many runs have read this input of this round with these bytes.
    """

    now_ns: int
    partitions: Set[str]
    sha_of: Callable[[Found], str | None]
    ready: Callable[[str], Set[str]]
    times_asked: Callable[[str, str, str], int]


def look(listing: Listing, cursor: str | None, world: World) -> Tick:
    """One tick over every inbox."""
    tick = Tick()
    tick.messages.extend(f"{name}: a folder whose name is no round's; rename or move it" for name in listing.not_rounds)
    tick.messages.extend(f"{name}: its inbox cannot be listed; check its permissions" for name in listing.unreadable)
    memory, by_round = remembered(cursor), _by_round(listing)
    after: Memory = {name: memory[name] for name in listing.rounds if name in memory}
    for round_name, files in by_round.items():
        before = memory.get(round_name, {})
        inputs = _one_file_an_input(round_name, files, tick)
        after[round_name] = before | {
            name: _seen(found, before.get(name), world, tick) for name, found in inputs.items()
        }
        news = {
            name: seen.sha
            for name in inputs
            if (seen := after[round_name][name]).settled and seen.sha and seen.sha != _sha(before.get(name))
        }
        settled = {name for name in inputs if after[round_name][name].settled}
        if settled and round_name not in world.partitions:
            tick.new_rounds.append(round_name)
        if news:
            _ask(round_name, news, settled, before, after[round_name], world, tick)
    return Tick(tick.requests, tick.new_rounds, tick.news, tick.messages, written(after))


def unlocked(news: Set[str], present: Set[str], ready: Set[str]) -> tuple[str, ...]:
    """The stages downstream of news that have all they need, in order. Metrics follow a bundle, not an inbox."""
    chosen: list[str] = []
    for stage in STAGES:
        if stage.kind == metrics.KIND:
            continue
        touched = not news.isdisjoint(stage.inbox) or not set(chosen).isdisjoint(stage.upstream)
        served = set(stage.inbox) <= present and all(name in chosen or name in ready for name in stage.upstream)
        if touched and served:
            chosen.append(stage.name)
    return tuple(chosen)


def _by_round(listing: Listing) -> dict[str, list[Found]]:
    rounds: dict[str, list[Found]] = {}
    for found in listing.files:
        rounds.setdefault(found.round, []).append(found)
    return rounds


def _one_file_an_input(round_name: str, files: Sequence[Found], tick: Tick) -> dict[str, Found]:
    inputs: dict[str, Found] = {}
    doubled, unknown = set(), 0
    for found in files:
        name = _INPUT_OF.get(found.name)
        if name is None:
            unknown += 1
        elif name in inputs:
            doubled.add(name)
        else:
            inputs[name] = found
    if unknown:
        tick.messages.append(f"{round_name}: {unknown} files in the inbox have names that no stage reads")
    for name in sorted(doubled):
        del inputs[name]
        tick.messages.append(f"{round_name}: two files claim to be the {name}; keep one of the two")
    return inputs


def _seen(found: Found, before: Seen | None, world: World, tick: Tick) -> Seen:
    """This file now. It is read only when its size or time is not that of its last reading."""
    same = before is not None and (before.size, before.modified_ns) == (found.size, found.modified_ns)
    if before is not None and same and before.settled:
        return before
    growing = Seen(found.size, found.modified_ns, settled=False, sha=_sha(before))
    if not same and world.now_ns - found.modified_ns < QUIET_NS:
        return growing
    try:
        sha = world.sha_of(found)
    except (InputError, OSError):
        tick.messages.append(f"{found.round}: {found.name} cannot be read; check its permissions")
        return growing
    return growing if sha is None else Seen(found.size, found.modified_ns, settled=True, sha=sha)


def _sha(seen: Seen | None) -> str | None:
    return None if seen is None else seen.sha


def _ask(
    round_name: str,
    news: Mapping[str, str],
    settled: Set[str],
    before: Mapping[str, Seen],
    now: Mapping[str, Seen],
    world: World,
    tick: Tick,
) -> None:
    """Ask for what the news unlocks, or say why nothing is asked for."""
    keys, fresh = [], {}
    for name, sha in sorted(news.items()):
        asked = world.times_asked(round_name, name, sha)
        if asked and _sha(before.get(name)) is None:
            tick.messages.append(f"{round_name}: {name} was ingested already; run its stages by hand to run them again")
            continue
        fresh[name] = sha
        # Bytes that come back after others are news again, but a run key is remembered for ever.
        keys.append(f"{name}:{sha}" + (f":again-{asked}" if asked else ""))
        tick.news.append((round_name, name, sha))
    stages = unlocked(fresh.keys(), settled, world.ready(round_name)) if fresh else ()
    if stages:
        needed = {name for stage in STAGES if stage.name in stages for name in stage.inbox}
        read = {name: now[name].sha or "" for name in sorted(needed)}
        tick.requests.append(Request(round_name, stages, fresh, read, f"{round_name}:" + "+".join(keys)))
    elif fresh:
        tick.messages.append(f"{round_name}: {', '.join(fresh)} arrived and unlocks no stage yet")


def remembered(cursor: str | None) -> Memory:
    """The memory that a cursor holds; a cursor that cannot be read holds nothing, which only costs a look."""
    try:
        value: Any = json.loads(zlib.decompress(base64.b64decode(cursor or "", validate=True)))
        if value["version"] != _VERSION:
            return {}
        return {
            name: {input_name: Seen(*entry) for input_name, entry in inputs.items()}
            for name, inputs in value["rounds"].items()
        }
    except (ValueError, zlib.error, KeyError, TypeError, AttributeError):
        return {}


def written(memory: Memory) -> str:
    """A memory as a cursor: packed, for Dagster keeps one with every tick."""
    rounds = {
        name: {key: [seen.size, seen.modified_ns, seen.settled, seen.sha] for key, seen in inputs.items()}
        for name, inputs in memory.items()
    }
    text = json.dumps({"version": _VERSION, "rounds": rounds}, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()
