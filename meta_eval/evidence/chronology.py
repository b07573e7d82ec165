"""Instants: one written grammar, compared as integers of milliseconds since 1970-01-01T00:00:00Z.

Source: the design's house rules (UTC, an offset is required) and RFC 3339, narrowed to one spelling so that
every Python reads the same set of strings:

    YYYY-MM-DD "T" HH:MM:SS [ "." 1 to 9 digits ] ( "Z" | +HH:MM | -HH:MM )

Upper-case T and Z only. Digits beyond the millisecond are cut, never rounded. Refused: no offset, `-00:00`
(RFC 3339: offset unknown), `+0000`, a comma, second 60, hour 24, days that do not exist, and instants that
fall outside the years 1 to 9999 in UTC, so that whatever is read can be written again.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache

DAY_MS = 86_400_000
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MAX_OFFSET_MINUTES = 14 * 60
_FIRST_MS = (1 - _EPOCH_ORDINAL) * DAY_MS
_LAST_MS = (date.max.toordinal() - _EPOCH_ORDINAL + 1) * DAY_MS - 1
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


@lru_cache(maxsize=4096)
def _day_start_ms(text: str) -> int | None:
    try:
        return (date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL) * DAY_MS
    except ValueError:
        return None


def instant_ms(value: object) -> int | None:
    """Milliseconds since the epoch (UTC) of a written instant, or None where the grammar refuses it."""
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    start = _day_start_ms(day)
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if start is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    ms = start + hours * 3_600_000 + minutes * 60_000 + seconds * 1000
    if fraction:
        ms += int(fraction[:3].ljust(3, "0"))
    if sign:
        offset = int(offset_hour) * 60 + int(offset_minute)
        if int(offset_minute) > 59 or offset > _MAX_OFFSET_MINUTES or (offset == 0 and sign == "-"):
            return None
        ms -= (offset if sign == "+" else -offset) * 60_000
    return ms if _FIRST_MS <= ms <= _LAST_MS else None


def written_instant(ms: int) -> str:
    """The one form in which meta_eval writes an instant: `2026-11-30T19:00:00.000Z`.

    Raises:
        ValueError: outside the years 1 to 9999.
    """
    if not _FIRST_MS <= ms <= _LAST_MS:
        raise ValueError("instant outside the years 1 to 9999")
    days, rest = divmod(ms, DAY_MS)
    ordinal = days + _EPOCH_ORDINAL
    seconds, millis = divmod(rest, 1000)
    day = date.fromordinal(ordinal).isoformat()
    return f"{day}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}Z"


def now_ms() -> int:
    """The real clock. Only the front doors call it, and only where their clock option is left out."""
    return int(datetime.now(UTC).timestamp() * 1000)
