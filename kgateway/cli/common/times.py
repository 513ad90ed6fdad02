"""
Times as people write and read them.
"""

import re
import time
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

from kgateway.config.kinds import duration

TIMES = "a time such as 2026-11-21T18:25:08Z, or an age such as 5m, 2h or 7d"
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_NS = 1_000_000_000
_AGE = duration(0, 1 << 42)
_WITH_UNIT = re.compile("[0-9]+[A-Za-z]+")


def time_ms(text: str) -> int:
    """
    The timestamp of an ISO time, in UTC unless it names a zone, or of `5m` for five minutes ago; ValueError with the
    reason if it is invalid.
    """
    try:
        timestamp_ms = ago_ms(text) if _WITH_UNIT.fullmatch(text) else _iso_ms(text)
    except ValueError:
        raise ValueError(f"{text!r} must be {TIMES}") from None
    if timestamp_ms < 0:  # below zero a timestamp has other meanings in a request, such as the end of the log
        raise ValueError(f"{text!r} is before 1970 in UTC, when Kafka's time begins")
    return timestamp_ms


def ago_ms(text: str) -> int:
    """
    The timestamp so long before now.
    """
    return time.time_ns() // 1_000_000 - int(str(_AGE.parse(text)))


def _iso_ms(text: str) -> int:
    when = datetime.fromisoformat(text)
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _FIRST) // timedelta(milliseconds=1)


def option_time_ms(text: str, instead: str = "") -> int:
    """
    The timestamp as the value of an option, with advice for times before Kafka's.
    """
    try:
        return time_ms(text)
    except ValueError as error:
        advice = f": {instead}" if instead and "before 1970" in str(error) else ""
        raise ArgumentTypeError(f"{error}{advice}") from None


def iso(timestamp_ms: int) -> str:
    """
    A timestamp to the millisecond, in UTC.
    """
    shown = datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def utc(ts_ns: int | None) -> str:
    """
    The second in UTC, or a dash.
    """
    return "-" if ts_ns is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ts_ns // _SECOND_NS))


def local(when_ms: int) -> str:
    """
    The second in the zone of this machine, as in the log of a gateway.
    """
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(when_ms / 1000))
