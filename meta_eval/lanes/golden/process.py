"""Asking an answerer that is a command: started without a shell, asked one question at a time, never trusted to behave.

It may hang, crash, print garbage, answer twice or out of order. The prompt at hand is then an error, the command is
killed with whatever it started, and the next prompt gets a fresh one. Every prompt comes out as something, in order.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.golden.prompts import Prompt
from meta_eval.lanes.golden.protocol import ERROR, LONGEST_ANSWER, Given, faulty, named_prompt, read_answer

_LAST_WORDS_S = 1.0
"""How long a command may take to end once it has been told that no question follows."""


@dataclass(frozen=True)
class Limits:
    """How long a prompt and the whole run may take, in seconds."""

    prompt_s: float = 10.0
    total_s: float = 300.0


def ask_command(
    command: str, prompts: Sequence[Prompt], limits: Limits, on_prompt: Callable[[], None] = lambda: None
) -> list[Given]:
    """What a command says to each prompt, in the order of the prompts.

    Raises:
        UsageError: the command cannot be started at all.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise UsageError("--answerer is no command: quote it as for a shell, though none is used")
    return _Interview(words, prompts, limits).held(on_prompt)


@dataclass
class _Interview:
    """All prompts put to one command, which is started as often as it must be."""

    words: list[str]
    prompts: Sequence[Prompt]
    limits: Limits
    found: dict[str, Given] = field(default_factory=dict)

    def held(self, on_prompt: Callable[[], None]) -> list[Given]:
        until = time.monotonic() + self.limits.total_s
        running: _Running | None = None
        try:
            for prompt in self.prompts:
                left = until - time.monotonic()
                if left <= 0:
                    self.found[prompt.prompt_id] = faulty("not-asked-in-time")
                    continue
                if running is None or running.has_more():
                    running = self._fresh(running)
                given = self._asked(running, prompt, min(self.limits.prompt_s, left))
                if given.fault == "ended" and running is not None and running.asked:
                    # It may have ended after its last answer, as one does that answers once and leaves.
                    running = self._fresh(running)
                    given = self._asked(running, prompt, min(self.limits.prompt_s, left))
                self.found[prompt.prompt_id] = given
                if given.outcome == ERROR:
                    self._settled(running, patience_s=0)
                    running = None
                on_prompt()
            self._settled(running, patience_s=_LAST_WORDS_S)
            running = None
        finally:
            if running is not None:
                running.stop()
        return [self.found[prompt.prompt_id] for prompt in self.prompts]

    def _fresh(self, old: _Running | None) -> _Running | None:
        """The command started anew; None where it was there once and cannot be started any more."""
        self._settled(old, patience_s=0)
        try:
            return _Running(self.words)
        except UsageError:
            if not self.found:
                raise
            return None

    def _asked(self, running: _Running | None, prompt: Prompt, patience_s: float) -> Given:
        if running is None:
            return faulty("ended")
        said = running.ask({"promptId": prompt.prompt_id, "question": prompt.question}, patience_s)
        if isinstance(said, str):
            return faulty(said)
        running.asked.append(prompt.prompt_id)
        given = read_answer(said, prompt.prompt_id)
        if given.fault == "out-of-order" and (named := named_prompt(said)) in running.asked[:-1]:
            self.found[named] = faulty("answered-twice")
        return given

    def _settled(self, running: _Running | None, *, patience_s: float) -> None:
        """End a command, and look at what it said beyond what it was asked.

        An answer that nobody asked for may mean that every answer since the start belonged to another question. Those
        that name their prompt are safe from that; the others are not believed.
        """
        if running is None or not (surplus := running.stop(patience_s)) or not running.asked:
            return
        believed = [each for each in running.asked if self.found[each].outcome != ERROR]
        named = {named_prompt(line) for line in surplus}
        for prompt_id in believed:
            if prompt_id in named or (None in named and prompt_id == running.asked[-1]):
                self.found[prompt_id] = faulty("answered-twice")
            elif not self.found[prompt_id].echoed:
                self.found[prompt_id] = faulty("out-of-step")


class _Running:
    """One started command, its output read line by line by a thread of its own."""

    def __init__(self, words: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's own, and no shell reads it
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that whatever it starts can be killed with it
            )
        except (OSError, ValueError):
            raise UsageError("the answerer's command cannot be started: is it there, and executable?") from None
        self.asked: list[str] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def ask(self, question: dict[str, str], patience_s: float) -> bytes | str:
        """The next line, or the fault for which there is none."""
        line = json.dumps(question, ensure_ascii=False).encode() + b"\n"
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            return "ended"
        try:
            said = self._lines.get(timeout=patience_s)
        except queue.Empty:
            return "timed-out"
        if said is None:
            return "ended"
        return "answer-too-long" if len(said) > LONGEST_ANSWER else said

    def has_more(self) -> bool:
        """Has it said something that it was not asked?"""
        return not self._lines.empty()

    def stop(self, patience_s: float = 0) -> list[bytes]:
        """End it and all that it started; what it still said."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if patience_s:
            self._thread.join(patience_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._thread.join(_LAST_WORDS_S)
        said = []
        while not self._lines.empty():
            said.append(self._lines.get_nowait())
        return [line for line in said if line]

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        with self._process.stdout as output, contextlib.suppress(OSError, ValueError):
            while line := output.readline(LONGEST_ANSWER + 1):
                if line.strip():
                    self._lines.put(line)
                if len(line) > LONGEST_ANSWER:
                    break
        self._lines.put(None)
