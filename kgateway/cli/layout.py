"""
How the subcommands that ask a cluster lay out what they tell.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgateway.client.cluster import Node  # with all message tables, which not everybody needs


def counted(number: int, noun: str) -> str:
    """
    So many of these.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def right_aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """
    Headings and rows with cells of one width, numbers below each other.
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in [headings, *rows]]


def number_or_dash(value: int | None) -> str:
    """
    A number that may not be known.
    """
    return "-" if value is None else str(value)


def told_node(node: "Node") -> dict[str, Any]:
    """
    A server for programs.
    """
    return {"id": node.id, "host": node.address.host, "port": node.address.port}
