"""
Plots as SVG, for a page that has the colours.
"""

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 900, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 892, 14, 160
_LINES = 4
_GAP = 0.15  # of a column's room
_WIDEST = 60


class Column(NamedTuple):
    """
    A value, and what is told where the mouse stands on it.
    """

    value: float
    told: str


class Line(NamedTuple):
    """
    Values in their order, none where nothing is known; a class of the page gives it a colour.
    """

    name: str
    values: Sequence[float | None]


class Marks(NamedTuple):
    """
    What stands below the columns: the place of a column, or of an edge between two, and a text.
    """

    texts: Sequence[tuple[float, str]]


class Scale(NamedTuple):
    """
    How values are told, and in which steps.
    """

    shown: Callable[[float], str]
    step: Callable[[float, int], int]


def columns(values: Sequence[Column], scale: Scale, marks: Marks, what: str) -> str:
    """
    Columns beside each other.
    """
    frame = _Frame(max((one.value for one in values), default=0), scale, len(values))
    width = min(frame.room * (1 - _GAP), _WIDEST)
    parts = []
    for place, one in enumerate(values):
        top = frame.y(one.value)
        left = frame.x(place + 0.5) - width / 2
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BOTTOM - top:.1f}">'
            f"<title>{escape(one.told)}</title></rect>"
        )
    return frame.drawn(parts, marks, what)


def lines(drawn: Sequence[Line], scale: Scale, marks: Marks, what: str) -> str:
    """
    Lines above the same places.
    """
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
    Where things are, the lines behind them and the texts around.
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
        """
        All of it.
        """
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
