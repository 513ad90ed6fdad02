"""
Plots as SVG; the page has the colours.

Axes have steps that people read easily: 1, 2, 5, 10 and so on for numbers; seconds, minutes, hours and days for time.
"""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 900, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 892, 14, 160
_LINES = 4
_GAP = 0.15  # of a column's room
_WIDEST = 60
_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_TIMES = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_S, 2 * _S, 5 * _S, 10 * _S, 15 * _S, 30 * _S, _MIN, 2 * _MIN, 5 * _MIN, 10 * _MIN, 15 * _MIN, 30 * _MIN),
    *(_H, 2 * _H, 3 * _H, 6 * _H, 12 * _H, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 364 * _DAY),
)
_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Column(NamedTuple):
    """
    A value, and its tooltip.
    """

    value: float
    label: str


class Line(NamedTuple):
    """
    Values in order, None if unknown; a class of the page gives the line its colour.
    """

    name: str
    values: Sequence[float | None]


class Marks(NamedTuple):
    """
    Texts below the columns; a place is a column's number, or a fraction for an edge.
    """

    texts: Sequence[tuple[float, str]]


class Scale(NamedTuple):
    """
    The format of values, and their steps.
    """

    shown: Callable[[float], str]
    step: Callable[[float, int], int]


def columns(values: Sequence[Column], scale: Scale, marks: Marks, what: str) -> str:
    frame = _Frame(max((value.value for value in values), default=0), scale, len(values))
    width = min(frame.room * (1 - _GAP), _WIDEST)
    parts = []
    for place, one in enumerate(values):
        top = frame.y(one.value)
        left = frame.x(place + 0.5) - width / 2
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BOTTOM - top:.1f}">'
            f"<title>{escape(one.label)}</title></rect>"
        )
    return frame.drawn(parts, marks, what)


def lines(drawn: Sequence[Line], scale: Scale, marks: Marks, what: str) -> str:
    most = max((value for line in drawn for value in line.values if value is not None), default=0)
    frame = _Frame(most, scale, max(len(line.values) for line in drawn))
    parts = []
    for line in drawn:
        known = [(frame.x(place + 0.5), frame.y(max(value, 0))) for place, value in _known(line)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        parts.append(f'<polyline class="line {line.name}" points="{points}"/>')
        parts += [f'<circle class="dot {line.name}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in known]
    return frame.drawn(parts, marks, what)


def _known(line: Line) -> list[tuple[int, float]]:
    return [(place, value) for place, value in enumerate(line.values) if value is not None]


class _Frame:
    """
    The coordinates, the grid and the texts.
    """

    def __init__(self, most: float, scale: Scale, places: int) -> None:
        self._scale = scale
        self._step = scale.step(most or 1, _LINES)
        self._top = max(-(-most // self._step), 1) * self._step
        self.room = (_RIGHT - _LEFT) / max(places, 1)

    def x(self, place: float) -> float:
        return _LEFT + place * self.room

    def y(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * value / self._top

    def drawn(self, parts: Sequence[str], marks: Marks, what: str) -> str:
        return "\n".join(
            [
                f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(what)}">',
                *self._grid(),
                *parts,
                *(self._text(self.x(place), _BOTTOM + 20, text, "middle") for place, text in marks.texts),
                "</svg>",
            ]
        )

    def _grid(self) -> list[str]:
        grid = []
        for number in range(round(self._top / self._step) + 1):
            value = number * self._step
            grid.append(f'<path class="grid" d="M{_LEFT},{self.y(value):.1f}H{_RIGHT}"/>')
            grid.append(self._text(_LEFT - 8, self.y(value) + 4, self._scale.shown(value), "end"))
        return grid

    def _text(self, x: float, y: float, text: str, anchor: str) -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def time_step(span_ms: int, most: int) -> int:
    """
    The shortest step that divides a period into at most so many parts.
    """
    years = math.ceil(span_ms / _TIMES[-1] / most)
    return next((step for step in _TIMES if span_ms / step <= most), _TIMES[-1] * max(years, 1))


def number_step(largest: float, most: int) -> int:
    """
    The same for whole numbers from 0 on: the shortest step into at most this many parts.
    """
    exact = max(largest / most, 1)
    power: int = 10 ** math.floor(math.log10(exact))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact)


def byte_step(largest: float, most: int) -> int:
    """
    The shortest step of bytes, which is a power of two.
    """
    return 1 << max(math.ceil(math.log2(max(largest / most, 1))), 0)


def in_bytes(count: float) -> str:
    """
    A size with at most three digits.
    """
    power = 0
    while count >= 1024 and power < len(_BYTES) - 1:
        count, power = count / 1024, power + 1
    shown = f"{count:.0f}" if not power or count >= 100 or count == int(count) else f"{count:.1f}"
    return f"{shown} {_BYTES[power] if shown != '1' or power else 'byte'}"


def in_time(ms: float) -> str:
    for unit, name in ((_DAY, "d"), (_H, "h"), (_MIN, "min"), (_S, "s")):
        if abs(ms) >= unit:
            return f"{ms / unit:.3g} {name}"
    return f"{ms:.3g} ms"


def at(ms: int, step_ms: int = 1) -> str:
    """
    A time in UTC, as precise as steps of this width need it.
    """
    when = datetime.fromtimestamp(ms / 1000, UTC)
    if step_ms >= _DAY:
        return f"{when:%Y-%m-%d}"
    if step_ms >= _MIN:
        return f"{when:%H:%M}" if ms % _DAY else f"{when:%b %d}"
    return f"{when:%H:%M:%S}" if step_ms >= _S else f"{when:%H:%M:%S}.{when.microsecond // 1000:03d}"


def whole(ms: int) -> str:
    """
    A time in UTC with its date.
    """
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
