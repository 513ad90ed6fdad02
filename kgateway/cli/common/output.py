"""
Output of commands for people: tables and numbers.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kgateway.cli.common.colours import Colour, coloured
from kgateway.observe.printable import printable
from kgateway.plurals import counted

if TYPE_CHECKING:
    from kgateway.client.cluster import Node  # with message tables, which not every command needs

WIDTH = 120  # of texts, which are wrapped
NAME_MAX = 255  # topics, groups and members are shown whole, to be copied
_GAP = "  "
_CELL_MIN = 12  # characters that a cell keeps on a narrow terminal
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Column(NamedTuple):
    """
    A column of a table. An optional column is left out if all its cells are empty. Cells with one of some words have a
    colour.
    """

    heading: str
    limit: int
    is_number: bool = False
    is_optional: bool = False
    colours: Mapping[str, Colour] = {}


class Row(str):
    """
    A line of a table, which may have colours. Its cells are printable.
    """


def width() -> int:
    """
    The columns of the terminal. A pipe or file has no limit: nothing is cut there.
    """
    return shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else sys.maxsize


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]], most: int = sys.maxsize) -> list[str]:
    """
    Headings and rows as lines; a column is as wide as its widest cell, up to its limit. A dash stands for None. To fit
    into so many characters the widest columns are cut.
    """
    kept = [
        (number, column)
        for number, column in enumerate(columns)
        if not column.is_optional or any(row[number] not in (None, "") for row in rows)
    ]
    cells = [_cells([column.heading, *(row[number] for row in rows)], column) for number, column in kept]
    shown = [_padded(own, column) for own, (_, column) in zip(_fitted(cells, most), kept, strict=True)]
    heading, *lines = [_GAP.join(cells).rstrip() for cells in zip(*shown, strict=True)]
    return [*map(Row, [coloured(heading, Colour.BOLD, sys.stdout), *lines])]


def safe_lines(text: str) -> list[str]:
    """
    The lines of a text that may have names which clients chose.
    """
    return [text] if isinstance(text, Row) else [*map(printable, text.split("\n"))]


def _cells(values: Sequence[object], column: Column) -> list[str]:
    return [cut("-" if value is None else str(value), column.limit) for value in values]


def _fitted(columns: Sequence[list[str]], most: int) -> list[list[str]]:
    widths = [max(map(len, cells)) for cells in columns]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > most and max(widths) > _CELL_MIN:
        widths[widths.index(max(widths))] -= 1
    return [[cut(cell, limit) for cell in cells] for cells, limit in zip(columns, widths, strict=True)]


def _padded(cells: Sequence[str], column: Column) -> list[str]:
    longest = max(map(len, cells))
    return [_cell(cell, longest, column) for cell in cells]


def _cell(text: str, width: int, column: Column) -> str:
    shown, gap = coloured(text, column.colours.get(text), sys.stdout), " " * (width - len(text))
    return gap + shown if column.is_number else shown + gap


def cut(text: str, limit: int) -> str:
    """
    Printable text, with an ellipsis where it has more characters.
    """
    shown = printable(text)
    if len(shown) <= limit:
        return shown
    mark = _ellipsis()
    return shown[: limit - len(mark)] + mark


def _ellipsis() -> str:
    try:
        "…".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "..."
    return "…"


def node_json(node: "Node") -> dict[str, Any]:
    return {"id": node.id, "host": node.address.host, "port": node.address.port}


def size(count: float) -> str:
    """
    Bytes in the largest unit that fits.
    """
    power = 0
    while count >= 1024 and power < len(_UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.1f} {_UNITS[power]}" if power else counted(round(count), "byte")


def throughput(records: int, byte_count: int, done: str, seconds: float) -> str:
    what = f"{counted(records, 'record', form=',')} ({size(byte_count)}) {done} in {seconds:.1f} s"
    return f"{what}: {counted(round(records / seconds), 'record', form=',')}/s, {size(byte_count / seconds)}/s"
