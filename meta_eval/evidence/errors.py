"""The one error tree. Foreign exceptions never leave meta_eval; only the command line exits.

No message quotes an offending value: it names the file, the rule and the next step.
"""

from __future__ import annotations


class MetaEvalError(Exception):
    """Root of every error that meta_eval raises on purpose; `exit_code` is what the terminal returns."""

    exit_code = 2


class InputError(MetaEvalError):
    """A file that cannot be read as what it should be: the rule it breaks, where, and what to do next."""

    def __init__(self, file: str, rule: str, *, offset: int | None = None, next_step: str = "") -> None:
        self.file, self.rule, self.offset, self.next_step = file, rule, offset, next_step
        where = "" if offset is None else f" at byte {offset}"
        tail = f"; {next_step}" if next_step else ""
        super().__init__(f"{file}: {rule}{where}{tail}")


class UsageError(MetaEvalError):
    """A call that asks for something that cannot be done as asked."""


class WaitingError(MetaEvalError):
    """A step whose input is not there yet: what it waits for, and where to put it."""

    exit_code = 1


class OverwriteError(MetaEvalError):
    """A different file of the same name is already there; evidence is never overwritten."""


class VerificationError(MetaEvalError):
    """An artifact that is not what it says it is: the rule it breaks and the JSON pointer where it does."""

    exit_code = 1

    def __init__(self, subject: str, rule: str, pointer: str = "") -> None:
        self.subject, self.rule, self.pointer = subject, rule, pointer
        where = f" at {pointer}" if pointer else ""
        super().__init__(f"{subject}: {rule}{where}")


class StoreBusyError(MetaEvalError):
    """The evidence store stayed locked by another process for longer than we wait."""


class StoreError(MetaEvalError):
    """The evidence store does not hold what it must hold."""

    exit_code = 1
