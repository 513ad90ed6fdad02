"""
Output of commands for people: tables and numbers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kgateway.observe.printable import printable

if TYPE_CHECKING:
    from kgateway.client.cluster import Node  # with message tables, which not every command needs

WIDTH = 120
NAME_MAX = 255  # topics, groups and members are shown whole, to be copied
_GAP = "  "
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Column(NamedTuple):
    """
    A column of a table. An optional column is left out if all its cells are empty.
    """

    heading: str
    limit: int
    is_number: bool = False
    is_optional: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
    """
    Headings and rows as lines; a column is as wide as its widest cell, up to its limit. A dash stands for None.
    """
    kept = [
        (number, column)
        for number, column in enumerate(columns)
        if not column.is_optional or any(row[number] not in (None, "") for row in rows)
    ]
    shown = [_shown([column.heading, *(row[number] for row in rows)], column) for number, column in kept]
    return [_GAP.join(cells).rstrip() for cells in zip(*shown, strict=True)]


def _shown(values: Sequence[object], column: Column) -> list[str]:
    cells = [cut("-" if value is None else str(value), column.limit) for value in values]
    width = max(map(len, cells))
    return [cell.rjust(width) if column.is_number else cell.ljust(width) for cell in cells]


def cut(text: str, limit: int) -> str:
    """
    Printable text, with an ellipsis where it has more characters.
    """
    shown = printable(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def node_json(node: "Node") -> dict[str, Any]:
    return {"id": node.id, "host": node.address.host, "port": node.address.port}


def counted(number: int, noun: str, plural: str = "", *, form: str = "") -> str:
    """
    A number with its noun, in the plural unless the number is 1.
    """
    return f"{number:{form}} {noun if number == 1 else plural or f'{noun}s'}"


def size(count: float) -> str:
    """
    Bytes in the largest unit that fits.
    """
    power = 0
    while count >= 1024 and power < len(_UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} {_UNITS[0]}"


def throughput(records: int, byte_count: int, done: str, seconds: float) -> str:
    what = f"{counted(records, 'record', form=',')} of {size(byte_count)} {done} in {seconds:.1f} s"
    return f"{what}: {records / seconds:,.0f} a second, {size(byte_count / seconds)}/s"
