"""Calls made some way ahead, their results taken in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def called_ahead(calls: Iterable[Callable[[], Result]], ahead: int) -> Generator[Result, None, None]:
    """Each call's result in the order of the calls, of which `ahead` are under way or wait to be taken."""
    with ThreadPoolExecutor(ahead) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for call in calls:
                waiting.append(pool.submit(call))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
