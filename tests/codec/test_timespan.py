"""Durations as .NET writes them."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codec import TimeSpanInvalid, format_timespan, parse_timespan


@given(st.timedeltas())
def test_every_duration_survives_its_text(span: timedelta) -> None:
    assert parse_timespan(format_timespan(span)) == span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("03:00:00", timedelta(hours=3)),
        ("00:05", timedelta(minutes=5)),
        (" 1.12:30:15.25 ", timedelta(days=1, hours=12, minutes=30, seconds=15, milliseconds=250)),
        ("1:02:03:04", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("-00:00:01.5000000", timedelta(seconds=-1.5)),
        ("00:00:00.1234567", timedelta(microseconds=123456)),
        ("7", timedelta(days=7)),
        ("PT5S", timedelta(seconds=5)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("P2W", timedelta(weeks=2)),
        ("-PT1.5S", timedelta(seconds=-1.5)),
    ],
)
def test_reads_the_forms_people_write(text: str, span: timedelta) -> None:
    assert parse_timespan(text) == span


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "00:00:00"),
        (timedelta(days=10, microseconds=1), "10.00:00:00.0000010"),
        (timedelta(seconds=-1), "-00:00:01"),
    ],
)
def test_writes_the_constant_form(span: timedelta, text: str) -> None:
    assert format_timespan(span) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "write it like"),
        ("soon", "write it like"),
        ("24:00:00", "hours go to 23"),
        ("00:60", "minutes and seconds to 59"),
        ("P1M", "no fixed length"),
        ("P1Y", "no fixed length"),
        ("PT", "write it like"),
        ("9" * 5000, "longer than"),
        ("9" * 12, "longer than"),
        ("٣:00:00", "write it like"),
    ],
)
def test_says_what_is_wrong_with_other_text(text: str, reason: str) -> None:
    with pytest.raises(TimeSpanInvalid, match=reason) as caught:
        parse_timespan(text)
    assert caught.value.code == "timespan.invalid"


@given(st.text())
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    with suppress(TimeSpanInvalid):
        parse_timespan(text)
