"""Instants as the two ledgers write them, in milliseconds since 1970-01-01T00:00:00Z.

The session process rubric. The ledgers come from other programs, so this grammar is wider than the one in which
meta_eval writes: a date alone (a year, a month or a day, at midnight UTC), and a date with a time to the minute or
finer, whose offset is due. Digits beyond the millisecond are cut, never rounded. Everything else is unreadable: no
offset means the reader's own time zone, and what a verdict says must not depend on the machine that reads.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
_PLAIN = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.([0-9]{3})Z")
_INSTANT = re.compile(
    r"([0-9]{4}(?:-[0-9]{2}){0,2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(?:Z|([+-])([0-9]{2}):([0-9]{2})))?"
)
# A day, with a time or not, and no word on whose day it is.
_ZONELESS = re.compile(
    r"(?:([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})|([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}))"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?"
)
_MOST_OFFSET_MS = 14 * 3_600_000


@lru_cache(maxsize=65_536)
def _day_ms(text: str) -> int | None:
    try:
        return (date.fromisoformat(f"{text}-01-01"[:10]).toordinal() - _EPOCH_ORDINAL) * _DAY_MS
    except ValueError:
        return None


def instant_ms(value: object) -> int | None:
    """Milliseconds since the epoch, or None where the value is no instant that every reader reads alike."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    if plain := _PLAIN.fullmatch(value):
        day, hour, minute, second, fraction = plain.groups()
        sign = offset_hour = offset_minute = None
    elif match := _INSTANT.fullmatch(value):
        day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    else:
        return None
    start = _day_ms(day)
    if start is None or hour is None:
        return start
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if len(day) != 10 or hours > 23 or minutes > 59 or seconds > 59:
        return None
    ms = start + hours * 3_600_000 + minutes * 60_000 + seconds * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    if sign is not None and offset_hour is not None and offset_minute is not None:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            return None
        offset = (int(offset_hour) * 60 + int(offset_minute)) * 60_000
        ms -= offset if sign == "+" else -offset
    return ms


def zoneless_span(value: object) -> tuple[int, int] | None:
    """First and last millisecond that an unreadable instant may mean, where it names a day and only its zone is
    missing: some clock somewhere may have shown it then. None for every other value."""
    match = _ZONELESS.fullmatch(value) if isinstance(value, str) and len(value) <= 64 else None
    if match is None or instant_ms(value) is not None:
        return None
    year, month, day, us_month, us_day, us_year = match.groups()
    start = _day_ms(f"{year or us_year}-{int(month or us_month):02d}-{int(day or us_day):02d}")
    return None if start is None else (start - _MOST_OFFSET_MS, start + _DAY_MS - 1 + _MOST_OFFSET_MS)
