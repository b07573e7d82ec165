"""How an error becomes a failed step: as a rule, a place and a next step, and never with a value.

The evidence contract: nothing private enters Dagster's event log. Our own errors quote no value, and are shown with
paths from the home folder on. A foreign exception may quote anything, so only its type and the line that raised it
are shown. Nothing is retried but a store that another process holds: a refused input is refused again.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import dagster as dg

from meta_eval.evidence.errors import InputError, MetaEvalError, StoreBusyError, VerificationError, WaitingError

_PACKAGE = Path(__file__).resolve().parents[1]
BUSY_RETRIES = 3
BUSY_PAUSE_S = 20.0


@contextlib.contextmanager
def refusals(home: Path, stage: str) -> Iterator[None]:
    """Turn every exception of the block into a failed step (or one more try, for a busy store)."""
    try:
        yield
    except (dg.Failure, dg.RetryRequested):
        raise
    except StoreBusyError:
        raise dg.RetryRequested(max_retries=BUSY_RETRIES, seconds_to_wait=BUSY_PAUSE_S) from None
    except MetaEvalError as error:
        raise _failure(error, home, stage) from None
    except Exception as error:
        name, place = type(error).__name__, _place(error.__traceback__)
        raise dg.Failure(
            f"{stage} broke: {name} in {place}",
            metadata={"rule": f"unexpected {name}", "where": place, "next step": "report it as a bug, with this line"},
            allow_retries=False,
        ) from None


def _failure(error: MetaEvalError, home: Path, stage: str) -> dg.Failure:
    message = _from_home(str(error), home)
    metadata: dict[str, str | int] = {"rule": message}
    if isinstance(error, WaitingError):
        metadata = {"waiting for": message.removeprefix("waiting for: ")}
    elif isinstance(error, InputError):
        metadata = {"rule": error.rule, "file": _from_home(error.file, home), "next step": error.next_step}
        metadata |= {} if error.offset is None else {"at byte": error.offset}
    elif isinstance(error, VerificationError):
        metadata = {"rule": error.rule, "file": _from_home(error.subject, home), "at": error.pointer or "/"}
    return dg.Failure(f"{stage}: {message}", metadata=metadata, allow_retries=False)


def _from_home(text: str, home: Path) -> str:
    return text.replace(f"{home}/", "")


def _place(traceback: TracebackType | None) -> str:
    """The innermost line of ours that raised, as module path and line number."""
    place = "unknown"
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE):
            place = f"{file.relative_to(_PACKAGE.parent).as_posix()}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
