"""
Draws results as SVG: `python -m bench.plot RESULTS... --into FOLDER`, and `bench.page` for docs/benchmarks.md.

Each row is a point on a logarithmic axis: how many times as good kgateway is as the server beside it, with a line from
the least to the most of the rounds. Faster and smaller is to the right.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log2
from pathlib import Path

from bench.kafka.table import number
from bench.results import NoResults, Result, Results

_WIDTH, _ROW, _HEAD, _FOOT = 960, 24, 58, 64
_LEFT, _RIGHT = 430, 740  # of the axis
_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933 }
.head { font-size: 15px; font-weight: 600 }
.quiet { font-size: 11px; fill: #5b6770 }
.paper { fill: #ffffff }
.grid { stroke: #d5dbe1 }
.even { stroke: #5b6770; stroke-width: 1.5 }
.better { fill: #1f77b4; stroke: #1f77b4 }
.worse { fill: #d9822b; stroke: #d9822b }
.range { stroke-width: 3; stroke-opacity: 0.45; stroke-linecap: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6eaee }
.quiet { fill: #9aa7b3 }
.paper { fill: #14181d }
.grid { stroke: #333d47 }
.even { stroke: #9aa7b3 }
.better { fill: #5aa9e6; stroke: #5aa9e6 }
.worse { fill: #f0a35c; stroke: #f0a35c }
}
"""


class Axis:
    """
    From a power of two to another, with 1 between them.
    """

    def __init__(self, rows: Sequence[Result]) -> None:
        values = [value for row in rows for value in row.times_as_good]
        self._first = min(-1, floor(log2(min(values))))
        self._last = max(1, ceil(log2(max(values))))

    def x(self, value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (log2(value) - self._first) / (self._last - self._first), 1)

    def marks(self) -> Iterator[tuple[float, str]]:
        for power in range(self._first, self._last + 1):
            yield self.x(2.0**power), str(2**power) if power >= 0 else f"1/{2**-power}"


def drawn(title: str, other: str, rows: Sequence[Result], caption: str) -> str:
    """
    The picture of these rows, in which `other` is the server beside kgateway.
    """
    height = _HEAD + _ROW * len(rows) + _FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
        _text(20, 28, title, "head"),
        _text(_RIGHT + 20, _HEAD - 10, f"kgateway : {other}", "quiet"),
    ]
    axis = Axis(rows)
    bottom = height - _FOOT
    for x, label in axis.marks():
        kind = "even" if label == "1" else "grid"
        lines.append(f'<line class="{kind}" x1="{x}" y1="{_HEAD}" x2="{x}" y2="{bottom}"/>')
        lines.append(_text(x, bottom + 16, label, "quiet", "middle"))
    for index, row in enumerate(rows):
        lines += _row(row, axis, _HEAD + _ROW * index + _ROW / 2)
    lines.append(_text(_LEFT, bottom + 32, f"times as good as {other}: faster and smaller is to the right", "quiet"))
    lines.append(_text(20, height - 12, caption, "quiet"))
    return "\n".join([*lines, "</svg>", ""])


def _row(row: Result, axis: Axis, y: float) -> Iterator[str]:
    middle, least, most = row.times_as_good
    kind = "better" if middle >= 1 else "worse"
    yield _text(_LEFT - 20, y + 4, row.work, "", "end")
    yield f'<line class="{kind} range" x1="{axis.x(least)}" y1="{y}" x2="{axis.x(most)}" y2="{y}"/>'
    yield f'<circle class="{kind}" cx="{axis.x(middle)}" cy="{y}" r="4.5"/>'
    yield _text(_RIGHT + 20, y + 4, f"{number(row.kgateway[0])} : {number(row.other[0])} {row.unit}", "")


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def main(arguments: list[str]) -> int:
    """
    Draw each results file into a picture of the same name.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.plot", description="draws results of benchmarks")
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="what --results has written")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    chosen.into.mkdir(parents=True, exist_ok=True)
    for path in chosen.results:
        try:
            results = Results.read(path)
        except NoResults as why:
            parser.error(str(why))
        if not results.rows:
            parser.error(f"{path} compares kgateway with no other server, so there is nothing to draw")
        caption = f"Measured on {results.origin.day}: {results.origin.machine}"
        picture = drawn(results.title, results.other, results.rows, caption)
        (chosen.into / f"{path.stem}.svg").write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
