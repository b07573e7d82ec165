"""One written grammar for instants, compared as instants, the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.evidence.chronology import DAY_MS, instant_ms, now_ms, written_instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ms_of(moment: datetime) -> int:
    """The oracle: whole milliseconds since the epoch, the rest cut."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


# G1: comparison is by instant, whatever the spelling.
@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("2026-04-01T10:00:00Z", "2026-04-01T10:00:00+00:00", 0),
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.1Z", -1),
        ("2024-06-01T00:30:00+03:00", "2024-06-01T00:00:00Z", -1),
        ("2026-07-10T12:00:00.1Z", "2026-07-10T12:00:00.15Z", -1),
        ("2024-06-01T00:00:00Z", "2024-06-01T00:30:00+03:00", 1),
    ],
)
def test_g1_instants_are_compared_as_instants(one: str, other: str, order: int) -> None:
    first, second = instant_ms(one), instant_ms(other)
    assert first is not None
    assert second is not None
    assert (first > second) - (first < second) == order


# G1.f, G2, G4: what the grammar refuses. An offset of -00:00 means that the offset is unknown.
@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01T00:00:00-00:00",
        "2024-03-10",
        "2024-03-10T10:00:00",
        "2024-03-10x10:00:00Z",
        "2024-03-10T10:00:00z",
        "2024-03-10t10:00:00Z",
        "2024-03-10 10:00:00Z",
        "2024-03-10T10:00:00,5Z",
        "2024-03-10T10:00:00.Z",
        "2024-03-10T10:00:00.1234567890Z",
        "2024-03-10T10Z",
        "2024-03-10T10:00Z",
        "2024-03-10T10:00:00+0000",
        "2024-03-10T10:00:00+00",
        "2024-03-10T10:00:00Z ",
        " 2024-03-10T10:00:00Z",
        "2024-03-10T10:00:00Z\n",
        "",
        "Sun, 10 Mar 2024 10:00:00 GMT",
        "01/02/2024",
        "2016-12-31T23:59:60Z",
        "2020-01-01T00:00:60Z",
        "2024-02-30T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-00-10T00:00:00Z",
        "2024-01-00T00:00:00Z",
        "2024-03-10T24:00:00Z",
        "2024-03-10T23:60:00Z",
        "2024-03-10T23:59:61Z",
        "0000-01-01T00:00:00Z",
        "+2024-03-10T10:00:00Z",
        "20240310T100000Z",
        "2024-W10-7T10:00:00Z",
        "2024-03-10T10:00:00+14:01",
        "2024-03-10T10:00:00-14:01",
        "2024-03-10T10:00:00+01:60",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "２０２４-03-10T10:00:00Z",
        "2024-03-10T10:00:00\u2212" + "01:00",
    ],
)
def test_g2_g4_whatever_is_outside_the_grammar_is_refused(text: str) -> None:
    assert instant_ms(text) is None


@pytest.mark.parametrize("value", [None, True, 0, 1_710_064_800, 1.5, [], {}, b"2024-03-10T10:00:00Z"])
def test_c5_only_text_is_an_instant(value: object) -> None:
    assert instant_ms(value) is None


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2024-03-10T10:00:00.5Z", "2024-03-10T10:00:00.500Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"),
        ("2024-03-10T10:00:00.999999999Z", "2024-03-10T10:00:00.999Z"),
        ("2024-03-10T00:00:00+14:00", "2024-03-09T10:00:00.000Z"),
        ("2024-12-31T23:30:00-01:00", "2025-01-01T00:30:00.000Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_is_written_in_one_way_and_cut_never_rounded(text: str, written: str) -> None:
    ms = instant_ms(text)
    assert ms is not None
    assert written_instant(ms) == written


# G6: sessions around a change of clocks.
@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("2024-11-03T01:50:00-04:00", "2024-11-03T01:10:00-05:00", 1200),
        ("2024-03-10T01:59:00-05:00", "2024-03-10T03:01:00-04:00", 120),
        ("2024-03-10T10:00:01Z", "2024-03-10T10:00:00Z", -1),
        ("2024-03-10T10:00:00Z", "2024-03-10T10:00:00Z", 0),
    ],
)
def test_g6_durations_are_of_instants_not_of_clock_faces(start: str, end: str, seconds: int) -> None:
    assert (instant_ms(end) or 0) - (instant_ms(start) or 0) == seconds * 1000


def test_g6_one_end_without_an_offset_is_refused_alone() -> None:
    assert [instant_ms(text) is None for text in ("2024-03-10T10:00:00Z", "2024-03-10T10:05:00")] == [False, True]


MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


def spelled(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


@given(MOMENTS)
def test_an_instant_is_that_of_the_calendar(moment: datetime) -> None:
    assert instant_ms(spelled(moment)) == ms_of(moment)


@given(MOMENTS, MOMENTS)
def test_order_is_that_of_the_calendar(one: datetime, other: datetime) -> None:
    assert ((instant_ms(spelled(one)) or 0) <= (instant_ms(spelled(other)) or 0)) is (ms_of(one) <= ms_of(other))


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_what_is_written_is_read_back(ms: int) -> None:
    assert instant_ms(written_instant(ms)) == ms


@pytest.mark.parametrize("ms", [-62_135_596_800_001, 253_402_300_800_000, 10**18])
def test_years_beyond_the_calendar_are_never_written(ms: int) -> None:
    with pytest.raises(ValueError, match="1 to 9999"):
        written_instant(ms)


@given(st.text(alphabet="0123456789-+:.TZtz ,", max_size=32))
def test_whatever_is_read_can_be_written(text: str) -> None:
    ms = instant_ms(text)
    if ms is not None:
        assert len(written_instant(ms)) == 24
        assert text[10] == "T"
        assert text.endswith("Z") or text[-6] in "+-"


def test_35_days_are_so_many_milliseconds() -> None:
    assert 35 * DAY_MS == 3_024_000_000


def test_the_zone_of_the_machine_changes_nothing() -> None:
    code = (
        "import time; from meta_eval.evidence.chronology import *;"
        "near = abs(now_ms() - time.time() * 1000) < 60000;"
        "print(instant_ms('2024-11-03T01:30:00-04:00'), written_instant(1730611800000), near)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"TZ": zone}, capture_output=True, text=True, check=True
        ).stdout
        for zone in ("UTC", "America/New_York", "Asia/Kathmandu")
    }
    assert outputs == {"1730611800000 2024-11-03T05:30:00.000Z True\n"}
    assert now_ms() > 0
