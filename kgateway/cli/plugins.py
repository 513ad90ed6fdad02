"""
`kgateway plugins`: which handler serves each API in a running gateway, and whose it is.
"""

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from kgateway.cli.common.control_socket import add_socket, answer
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import WIDTH, Column, table
from kgateway.cli.common.parser import Command
from kgateway.observe.printable import printable

_COLUMNS = (
    Column("KEY", 5),
    Column("API", 28),
    Column("VERSIONS", 8),
    Column("HANDLER", 38),
    Column("FROM", 22),
    Column("PRIORITY", 8),
)


def _run(options: Namespace) -> Iterator[str | Json]:
    result = answer(options, "plugins", {})
    if options.json:
        yield result
        return
    plugins = result["plugins"]
    heading, *lines = table(_COLUMNS, [[plugin[column.heading.lower()] for column in _COLUMNS] for plugin in plugins])
    yield heading
    for line, plugin in zip(lines, plugins, strict=True):
        yield line
        yield from (printable(f"       inside {_filter(row)}")[:WIDTH] for row in plugin["filters"])


PLUGINS = Command(add_socket, _run)


def _filter(row: dict[str, Any]) -> str:
    scope = [f"{name} {' '.join(row[name])}" for name in ("topics", "listeners", "principals") if row[name]]
    return ", ".join([row["filter"], f"from {row['from']}", f"priority {row['priority']}", *scope])
