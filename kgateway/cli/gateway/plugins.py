"""
`kgateway plugins`: which handler serves each API in a running gateway, and whose it is.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, cut, table, width
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.gateway.control_socket import add_socket, answer

_COLUMNS = (
    Column("KEY", 5),
    Column("API", NAME_MAX),
    Column("VERSIONS", 8),
    Column("HANDLER", NAME_MAX),
    Column("FROM", NAME_MAX),
    Column("PRIORITY", 8),
)


def _add_arguments(parser: ArgumentParser) -> None:
    add_socket(parser)
    add_example(parser, "kgateway plugins")


def _run(options: Namespace) -> Iterator[str | Json]:
    result = answer(options, "plugins", {})
    if options.json:
        yield result
        return
    plugins, columns = result["plugins"], width()
    rows = [[plugin[column.heading.lower()] for column in _COLUMNS] for plugin in plugins]
    heading, *lines = table(_COLUMNS, rows, columns)
    yield heading
    for line, plugin in zip(lines, plugins, strict=True):
        yield line
        yield from (cut(f"       wrapped by {_filter(row)}", columns) for row in plugin["filters"])


PLUGINS = Command(_add_arguments, _run)


def _filter(row: dict[str, Any]) -> str:
    scope = [f"{name} {' '.join(row[name])}" for name in ("topics", "listeners", "principals") if row[name]]
    return ", ".join([row["filter"], f"from {row['from']}", f"priority {row['priority']}", *scope])
