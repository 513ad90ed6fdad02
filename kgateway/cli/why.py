"""
`kgateway why`: what clients were refused, and the rule and state behind it.
"""

from argparse import ArgumentParser, Namespace
from textwrap import wrap
from typing import Any

from kgateway.cli.control import WIDTH, add_json, add_socket, answer, as_json, clock, table
from kgateway.observe.plain import printable

_HEADINGS = ("TIME", "TIMES", "CLIENT", "REQUEST", "OUTCOME")
_LIMITS = (8, 7, 28, 30, 39)
_INDENT = " " * 10  # below the second column


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("--client", metavar="GLOB", help="only clients whose id or host fits, such as 'checkout-*'")
    parser.add_argument("--api", metavar="NAME", help="only this API, such as Fetch")
    parser.add_argument("--code", metavar="NAME", help="only this error code, or failed, malformed, closed")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="how many, 20 if not given")
    add_json(parser)
    add_socket(parser)


def run(options: Namespace) -> str:
    """
    The answer, newest last.
    """
    asked = {name: getattr(options, name) for name in ("client", "api", "code", "limit")}
    result = answer(options, "why", asked)
    return as_json(result) if options.json else _text(result)


def _text(result: dict[str, Any]) -> str:
    if not result["remembered"]:
        return "no client was refused since the gateway started"
    if not result["reasons"]:
        return f"none of the {result['remembered']} reasons that are remembered fits"
    heading, *lines = table(_HEADINGS, _LIMITS, [_row(reason) for reason in result["reasons"]])
    told = [line for pair in zip(lines, map(_story, result["reasons"]), strict=True) for line in pair]
    return "\n".join([heading, *told])


def _row(reason: dict[str, Any]) -> tuple[str, ...]:
    return (
        clock(reason["when_ms"]),
        f"x{reason['times']}" if reason["times"] > 1 else "",
        f"{reason['client_id']}@{reason['host']}" if reason["client_id"] else reason["host"],
        reason["api"] if reason["version"] is None else f"{reason['api']} v{reason['version']}",
        reason["outcome"],
    )


def _story(reason: dict[str, Any]) -> str:
    about = f"{reason['subject']}: " if reason["subject"] else ""
    since = f" (first at {clock(reason['since_ms'])})" if reason["times"] > 1 else ""
    text = printable(f"{about}{reason['message']}{since}")
    return "\n".join(wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT))
