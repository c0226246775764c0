"""Reads and formats times: those in the files of runs, and those that a user gives."""
import contextlib
import datetime
import re
import warnings
from typing import Optional

from dateutil import parser, tz
from dateutil.relativedelta import relativedelta, weekdays

_AGO = re.compile(r"(an?|\d+) (minute|hour|day|week|month|year)s? ago")
_DAYS = {"today": 0, "yesterday": 1}
_UNITS = {"d": 86400, "h": 3600, "min": 60}


def now() -> datetime.datetime:
    """Returns the time, in the zone of this machine."""
    return datetime.datetime.now(tz.tzlocal())


def as_text(time: datetime.datetime) -> str:
    """Returns a time with its zone, to the second, as `read_time` reads it."""
    return time.isoformat(timespec="seconds")


def read_time(text: object) -> Optional[datetime.datetime]:
    """Returns a time in the file of a run, None if it is not a time; without a zone it is in that of this machine."""
    try:
        return _in_a_zone(parser.isoparse(text))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def parse_time(name: str, text: str) -> datetime.datetime:
    """Returns a time in the past that a user has given.

    Args:
        name: of the argument, for messages.
        text: a date, a time of today, or both (`2026-11-20`, `20 Nov`, `10:30`, `2026-11-20T10:30+01:00`), in the zone
            of this machine if it names none; or `today`, `yesterday`, `Friday`, `3 days ago`, `an hour ago`.
            `2026-11` is the first of November, and a day begins at midnight.

    Raises:
        ValueError: it cannot be read, can be read as two dates, or is in the future.
    """
    try:
        time = _parse(text.strip())
    except (OverflowError, ValueError, parser.UnknownTimezoneWarning) as error:
        raise ValueError(f"{name}: expected a time such as 2026-11-20, '2026-11-20 10:30', yesterday or '3 days ago', "
                         f"got {text!r} ({error})") from error
    if time > now():
        raise ValueError(f"{name}: expected a time in the past, got {text!r}, which is {as_text(time)}")
    return time


def _parse(text: str) -> datetime.datetime:
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    if text.lower() in _DAYS:
        return midnight - relativedelta(days=_DAYS[text.lower()])
    ago = _AGO.fullmatch(text.lower())
    if ago:
        return now() - relativedelta(**{f"{ago[2]}s": 1 if ago[1].startswith("a") else int(ago[1])})
    weekday = parser.parserinfo().weekday(text)
    if weekday is not None:
        return midnight + relativedelta(weekday=weekdays[weekday](-1))
    with contextlib.suppress(ValueError):
        return _in_a_zone(parser.isoparse(text))
    with warnings.catch_warnings():
        warnings.simplefilter("error", parser.UnknownTimezoneWarning)
        months = {parser.parse(text, default=midnight.replace(month=month, day=1)).month for month in (1, 3)}
        default = midnight.replace(day=1) if len(months) == 1 else midnight  # Nov 2026; 10:30
        readings = {parser.parse(text, default=default, dayfirst=dayfirst) for dayfirst in (False, True)}
    if len(readings) > 1:
        raise ValueError("which may be " + " or ".join(f"{time:%Y-%m-%d}" for time in sorted(readings)))
    return readings.pop()


def _in_a_zone(time: datetime.datetime) -> datetime.datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=tz.tzlocal())


def age(time: datetime.datetime) -> str:
    """Returns in a few characters how long ago a time is, such as `3 h`."""
    return duration(max(0.0, (now() - time).total_seconds()))


def duration(seconds: float) -> str:
    """Returns a time span in a few characters, such as `3 h`."""
    unit = next((unit for unit, size in _UNITS.items() if seconds >= 2 * size), None)
    return f"{seconds:.0f} s" if unit is None else f"{seconds / _UNITS[unit]:.0f} {unit}"
