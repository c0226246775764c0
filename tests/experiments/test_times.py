"""Times of runs: written with their zone, read back, and as a user gives them."""
import datetime
import os
import re
import time

import pytest

from experiments import times

NOW = datetime.datetime(2026, 11, 21, 15, 30, 20, tzinfo=datetime.timezone.utc)  # a Saturday


@pytest.fixture
def now(monkeypatch):
    """It is this time, in a zone two hours before that of Greenwich, in which it is 13:30."""
    monkeypatch.setenv("TZ", "<-02>2")
    time.tzset()
    monkeypatch.setattr(times, "now", lambda: NOW.astimezone(times.tz.tzlocal()))
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


@pytest.mark.parametrize("text, expected", [
    ("2026-11-20", "2026-11-20T00:00:00-02:00"),
    ("2026-11-20 10:30", "2026-11-20T10:30:00-02:00"),
    ("2026-11-20T10:30+01:00", "2026-11-20T10:30:00+01:00"),
    ("2026-11-20T10:30:15Z", "2026-11-20T10:30:15+00:00"),
    ("20 Nov", "2026-11-20T00:00:00-02:00"),
    ("Nov 20, 2025 4pm", "2025-11-20T16:00:00-02:00"),
    ("20.11.2026", "2026-11-20T00:00:00-02:00"),
    ("2026-11", "2026-11-01T00:00:00-02:00"),
    ("November 2026", "2026-11-01T00:00:00-02:00"),
    ("2026", "2026-01-01T00:00:00-02:00"),
    ("10:30", "2026-11-21T10:30:00-02:00"),
    ("10:30 UTC", "2026-11-21T10:30:00+00:00"),
    ("today", "2026-11-21T00:00:00-02:00"),
    (" Yesterday ", "2026-11-20T00:00:00-02:00"),
    ("Friday", "2026-11-20T00:00:00-02:00"),
    ("sat", "2026-11-21T00:00:00-02:00"),
    ("3 days ago", "2026-11-18T13:30:20-02:00"),
    ("an hour ago", "2026-11-21T12:30:20-02:00"),
    ("90 minutes ago", "2026-11-21T12:00:20-02:00"),
    ("2 weeks ago", "2026-11-07T13:30:20-02:00"),
    ("1 month ago", "2026-10-21T13:30:20-02:00"),
])
def test_what_a_user_may_say(text, expected, now):
    assert times.as_text(times.parse_time("--since", text)) == expected


@pytest.mark.parametrize("text, message", [
    ("tommorow", "expected a time such as 2026-11-20, .* got 'tommorow'"),
    ("", "got ''"),
    ("2026-13-40", "got '2026-13-40'"),
    ("3 fortnights ago", "got '3 fortnights ago'"),
    ("99999999 years ago", "got '99999999 years ago'"),
    ("9" * 30, "got '9+'"),
    ("11/12/2025", "which may be 2025-11-12 or 2025-12-11"),
    ("10:30 CET", "CET"),
    ("2026-11-22", "expected a time in the past, got '2026-11-22', which is 2026-11-22T00:00:00-02:00"),
    ("20 Dec", "expected a time in the past, .* which is 2026-12-20"),
])
def test_what_is_no_time_or_not_clear(text, message, now):
    with pytest.raises(ValueError, match=f"^--since: .*{message}"):
        times.parse_time("--since", text)


def test_a_time_is_read_back_as_it_was_in_whatever_zone(now):
    text = times.as_text(times.now())
    assert text == "2026-11-21T13:30:20-02:00"
    os.environ["TZ"] = "<+05>-5"
    time.tzset()
    assert times.read_time(text) == NOW


@pytest.mark.parametrize("text", [None, 3, "yesterday", ""])
def test_what_a_run_did_not_write_down(text):
    assert times.read_time(text) is None


@pytest.mark.parametrize("seconds, expected", [
    (0, "0 s"), (-5, "0 s"), (119, "119 s"), (120, "2 min"), (7100, "118 min"), (7300, "2 h"), (100 * 3600, "4 d"),
])
def test_ages(seconds, expected, now):
    assert times.age(NOW - datetime.timedelta(seconds=seconds)) == expected


def test_a_time_without_a_zone_is_in_that_of_the_machine(now):
    assert re.fullmatch(r".*-02:00", times.as_text(times.read_time("2026-11-20T10:30:00")))
