"""A desk at which inboxes are looked at, tick by tick, with a clock of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from meta_eval.defs.production import inbox, listing

SECOND = 1_000_000_000


@dataclass
class Desk:
    """A home folder, a clock and the cursor of the last tick; every request counts as launched."""

    home: Path
    now: int = 1_000 * SECOND
    cursor: str | None = None
    launched: list[inbox.Request] = field(default_factory=list)
    ready: set[str] = field(default_factory=set)
    hashed: list[str] = field(default_factory=list)

    def put(self, round_name: str, name: str, text: str = "[]", *, age: float = 60.0) -> Path:
        path = self.home / "rounds" / round_name / "inbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        modified = self.now - int(age * SECOND)
        os.utime(path, ns=(modified, modified))
        return path

    def tick(self, *, after: float = 30.0) -> inbox.Tick:
        self.now += int(after * SECOND)
        tick = inbox.look(listing.list_inboxes(self.home / "rounds"), self.cursor, self._world())
        self.cursor = tick.cursor
        self.launched += tick.requests
        return tick

    def _world(self) -> inbox.World:
        def sha_of(found: listing.Found) -> str | None:
            self.hashed.append(f"{found.round}/{found.name}")
            return listing.steady_receipt(self.home / "rounds", found)

        return inbox.World(
            now_ns=self.now,
            partitions={request.round for request in self.launched},
            sha_of=sha_of,
            ready=lambda _: self.ready,
            times_asked=lambda *asked: sum(
                (one.round, name, sha) == asked for one in self.launched for name, sha in one.read.items()
            ),
        )
