"""
`kgateway clients`: who is connected to a running gateway, and what is done for them.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from kgateway.cli.bar import size
from kgateway.cli.control import add_json, add_socket, answer, as_json, clock, table
from kgateway.cli.example import add_example
from kgateway.cli.layout import right_aligned
from kgateway.cli.pairs import positive

_HEADINGS = ("CLIENT", "SOFTWARE", "ADDRESS", "LISTENER", "SINCE", "REQUESTS", "IN", "OUT", "WAITS FOR")
_LIMITS = (40, 40, 50, 20, 8, 12, 12, 12, 50)
_NUMBERS = slice(5, 8)
_SORTS = ("client", "since", "idle", "requests", "in", "out")
_LIMIT_MAX = 1000
_UNKNOWN = "unknown"  # clients of old do not tell
_SOFTWARE = "only clients with this software, such as 'confluent-kafka-*', or 'librdkafka' of most other users of that"
_EXAMPLE = "kgateway clients --client 'billing-*' --sort requests"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("--client", metavar="GLOB", help="only clients whose id or address fits, such as 'billing-*'")
    parser.add_argument("--software", metavar="GLOB", help=_SOFTWARE)
    parser.add_argument("--listener", metavar="GLOB", help="only clients of this listener")
    parser.add_argument("--sort", choices=_SORTS, default=_SORTS[0], help="by what; the largest numbers come first")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=_LIMIT_MAX,
        help=f"how many, {_LIMIT_MAX} if not given, and at most",
    )
    add_json(parser)
    add_socket(parser)
    add_example(parser, _EXAMPLE)


def run(options: Namespace) -> str:
    """
    The answer.
    """
    asked = {name: getattr(options, name) for name in ("client", "software", "listener", "sort", "limit")}
    result = answer(options, "clients", asked)
    result["clients"] = [_known(client) for client in result["clients"]]
    return as_json(result) if options.json else _text(result)


def _limit(text: str) -> int:
    number = positive(text)
    if number > _LIMIT_MAX:
        raise ArgumentTypeError(f"no more than {_LIMIT_MAX} are told of at once")
    return number


def _known(client: dict[str, Any]) -> dict[str, Any]:
    """
    With None in the place of what is not known.
    """
    told = {name: None if client[name] == _UNKNOWN else client[name] for name in ("software", "software_version")}
    return client | told | {"client_id": client["client_id"] or None}


def _text(result: dict[str, Any]) -> str:
    if not result["clients"]:
        return f"none of the {result['connected']} clients fits" if result["connected"] else "nobody is connected"
    rows = [_row(client) for client in result["clients"]]
    headings, *numbers = right_aligned(_HEADINGS[_NUMBERS], [row[_NUMBERS] for row in rows])
    cells = [[*row[:5], *aligned, row[8]] for row, aligned in zip(rows, numbers, strict=True)]
    lines = table([*_HEADINGS[:5], *headings, _HEADINGS[8]], _LIMITS, cells)
    left = result["fitting"] - len(rows)
    return "\n".join([*lines, *([f"and {left} more: see --limit"] if left else [])])


def _row(client: dict[str, Any]) -> tuple[str, ...]:
    software = [client["software"], client["software_version"]]
    return (
        client["client_id"] or "-",
        " ".join(filter(None, software)) or "-",
        client["address"],
        client["listener"],
        clock(client["since_ms"]),
        str(client["requests"]),
        size(client["bytes_in"]),
        size(client["bytes_out"]),
        client["waits_for"],
    )
