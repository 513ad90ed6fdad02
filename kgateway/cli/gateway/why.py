"""
`kgateway why`: what clients were refused, and the rule and state behind it.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import WIDTH, Column, table, width
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.common.times import TIMES, local, option_time_ms
from kgateway.cli.gateway.control_socket import add_socket, answer
from kgateway.observe.printable import printable
from kgateway.plurals import counted

_COLUMNS = (
    Column("TIME", 24),
    Column("TIMES", 12),
    Column("CLIENT", 600),
    Column("REQUEST", 40),
    Column("OUTCOME", 40),
)
_INDENT = " " * 4


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--client", metavar="GLOB", help="only clients whose id or host matches, such as 'checkout-*'")
    parser.add_argument("--api", metavar="NAME", help="only this API, such as Fetch")
    parser.add_argument("--code", metavar="NAME", help="only this error code, or failed, malformed, closed")
    parser.add_argument(
        "--since", metavar="TIME", dest="since_ms", type=option_time_ms, help=f"only errors since {TIMES}"
    )
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="the maximum number of errors (default 20)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also errors that are a normal step of the protocol, after which clients continue",
    )
    add_socket(parser)
    add_example(parser, "kgateway why --client 'checkout-*' --since 1h")


def _run(options: Namespace) -> Iterator[str | Json]:
    asked = {name: getattr(options, name) for name in ("client", "api", "code", "since_ms", "limit")}
    asked |= {"all": options.all or None}
    result = answer(options, "why", asked)
    if options.json:
        yield result
    elif not result["remembered"]:
        yield "no client was refused since the gateway started"
    elif not result["reasons"] and not result["steps"]:
        yield f"no reason matches ({counted(result['remembered'], 'reason')} in all)"
    else:
        yield from _text(result)


def _text(result: dict[str, Any]) -> Iterator[str]:
    if result["reasons"]:
        heading, *lines = table(_COLUMNS, [_row(reason) for reason in result["reasons"]], width())
        yield heading
        for line, reason in zip(lines, result["reasons"], strict=True):
            yield line
            yield from _story(reason)
    if result["steps"]:
        yield f"not shown: {counted(result['steps'], 'step')} of the protocol (--all)"


WHY = Command(_add_arguments, _run)


def _row(reason: dict[str, Any]) -> tuple[str, ...]:
    return (
        local(reason["when_ms"]),
        f"x{reason['times']}" if reason["times"] > 1 else "",
        f"{reason['client_id']}@{reason['host']}" if reason["client_id"] else reason["host"],
        reason["api"] if reason["version"] is None else f"{reason['api']} v{reason['version']}",
        reason["outcome"],
    )


def _story(reason: dict[str, Any]) -> list[str]:
    about = f"{reason['subject']}: " if reason["subject"] else ""
    since = f" (first at {local(reason['since_ms'])})" if reason["times"] > 1 else ""
    text = printable(f"{about}{reason['message']}{since}")
    return wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT) or [""]
