"""
`kgateway plugins`: which handler serves each API in a running gateway, and whose it is.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from kgateway.cli.control import WIDTH, add_json, add_socket, answer, as_json, table
from kgateway.observe.plain import printable

_HEADINGS = ("KEY", "API", "VERSIONS", "HANDLER", "FROM", "PRIORITY")
_LIMITS = (5, 28, 8, 38, 22, 8)


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_json(parser)
    add_socket(parser)


def run(options: Namespace) -> str:
    """
    The answer, by key.
    """
    result = answer(options, "plugins", {})
    return as_json(result) if options.json else _text(result["plugins"])


def _text(plugins: list[dict[str, Any]]) -> str:
    heading, *lines = table(_HEADINGS, _LIMITS, [_row(plugin) for plugin in plugins])
    told = [line for row, plugin in zip(lines, plugins, strict=True) for line in [row, *_filters(plugin)]]
    return "\n".join([heading, *told])


def _row(plugin: dict[str, Any]) -> tuple[str, ...]:
    names = ("key", "api", "versions", "handler", "from", "priority")
    return tuple(str(plugin[name]) for name in names)


def _filters(plugin: dict[str, Any]) -> list[str]:
    return [printable(f"       inside {_filter(row)}")[:WIDTH] for row in plugin["filters"]]


def _filter(row: dict[str, Any]) -> str:
    scope = [f"{name} {' '.join(row[name])}" for name in ("topics", "listeners", "principals") if row[name]]
    return ", ".join([row["filter"], f"from {row['from']}", f"priority {row['priority']}", *scope])
