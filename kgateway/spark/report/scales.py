"""
Steps that people read easily: of numbers 1, 2, 5, 10, and so on; of time seconds, minutes, hours and days.
"""

import math
from datetime import UTC, datetime

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_TIMES = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_S, 2 * _S, 5 * _S, 10 * _S, 15 * _S, 30 * _S, _MIN, 2 * _MIN, 5 * _MIN, 10 * _MIN, 15 * _MIN, 30 * _MIN),
    *(_H, 2 * _H, 3 * _H, 6 * _H, 12 * _H, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 364 * _DAY),
)
_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def time_step(span_ms: int, most: int) -> int:
    """
    The shortest step that cuts a time in no more pieces than these.
    """
    years = math.ceil(span_ms / _TIMES[-1] / most)
    return next((step for step in _TIMES if span_ms / step <= most), _TIMES[-1] * max(years, 1))


def number_step(largest: float, most: int) -> int:
    """
    The same of a number from 0 on; it is whole.
    """
    exact = max(largest / most, 1)
    power: int = 10 ** math.floor(math.log10(exact))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact)


def byte_step(largest: float, most: int) -> int:
    """
    The same of bytes: a power of two.
    """
    return 1 << max(math.ceil(math.log2(max(largest / most, 1))), 0)


def in_bytes(count: float) -> str:
    """
    So many bytes, with three digits at most.
    """
    power = 0
    while count >= 1024 and power < len(_BYTES) - 1:
        count, power = count / 1024, power + 1
    shown = f"{count:.0f}" if not power or count >= 100 or count == int(count) else f"{count:.1f}"
    return f"{shown} {_BYTES[power] if shown != '1' or power else 'byte'}"


def in_time(ms: float) -> str:
    """
    So long.
    """
    for unit, name in ((_DAY, "d"), (_H, "h"), (_MIN, "min"), (_S, "s")):
        if abs(ms) >= unit:
            return f"{ms / unit:.3g} {name}"
    return f"{ms:.3g} ms"


def at(ms: int, step_ms: int = 1) -> str:
    """
    A time in UTC, as exactly as steps of this width need it.
    """
    when = datetime.fromtimestamp(ms / 1000, UTC)
    if step_ms >= _DAY:
        return f"{when:%Y-%m-%d}"
    if step_ms >= _MIN:
        return f"{when:%H:%M}" if ms % _DAY else f"{when:%b %d}"
    return f"{when:%H:%M:%S}" if step_ms >= _S else f"{when:%H:%M:%S}.{when.microsecond // 1000:03d}"


def whole(ms: int) -> str:
    """
    A time in UTC with its day.
    """
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
