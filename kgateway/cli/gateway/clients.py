"""
`kgateway clients`: who is connected to a running gateway, and what is done for them.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import Any

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, size, table, width
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.common.times import local
from kgateway.cli.common.values import positive
from kgateway.cli.gateway.control_socket import add_socket, answer
from kgateway.plurals import counted

_COLUMNS = (
    Column("CLIENT", NAME_MAX),
    Column("SOFTWARE", NAME_MAX),
    Column("ADDRESS", 50),
    Column("LISTENER", 20),
    Column("SINCE", 24),
    Column("REQUESTS", 12, is_number=True),
    Column("IN", 12, is_number=True),
    Column("OUT", 12, is_number=True),
    Column("WAITS FOR", 50),
)
_SORTS = ("client", "since", "idle", "requests", "in", "out")
_LIMIT_MAX = 1000
_UNKNOWN = "unknown"  # old clients do not say
_SOFTWARE = "only clients with this software, such as 'confluent-kafka-*', or 'librdkafka' for most clients based on it"


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--client", metavar="GLOB", help="only clients whose id or address matches, such as 'billing-*'"
    )
    parser.add_argument("--software", metavar="GLOB", help=_SOFTWARE)
    parser.add_argument("--listener", metavar="GLOB", help="only clients of this listener")
    parser.add_argument(
        "--sort", choices=_SORTS, default=_SORTS[0], help="what to sort by; the largest numbers come first"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=_LIMIT_MAX,
        help=f"the maximum number of connections (default {_LIMIT_MAX}, which is also the highest)",
    )
    add_socket(parser)
    add_example(parser, "kgateway clients --client 'billing-*' --sort requests")


def _run(options: Namespace) -> Iterator[str | Json]:
    asked = {name: getattr(options, name) for name in ("client", "software", "listener", "sort", "limit")}
    result = answer(options, "clients", asked)
    clients = result["clients"] = [_with_nulls(client) for client in result["clients"]]
    if options.json:
        yield result
    elif clients:
        yield from table(_COLUMNS, [_row(client) for client in clients], width())
        left = result["fitting"] - len(clients)
        yield from [f"and {left} more: see --limit"] if left else []
    else:
        yield (
            f"no client matches ({counted(result['connected'], 'connection')} in all)"
            if result["connected"]
            else "no clients are connected"
        )


CLIENTS = Command(_add_arguments, _run)


def _limit(text: str) -> int:
    number = positive(text)
    if number > _LIMIT_MAX:
        raise ArgumentTypeError(f"at most {_LIMIT_MAX} are listed at once")
    return number


def _with_nulls(client: dict[str, Any]) -> dict[str, Any]:
    """
    The client, with None for what is not known of it.
    """
    software = {name: None if client[name] == _UNKNOWN else client[name] for name in ("software", "software_version")}
    return client | software | {"client_id": client["client_id"] or None}


def _row(client: dict[str, Any]) -> tuple[object, ...]:
    return (
        client["client_id"],
        " ".join(filter(None, [client["software"], client["software_version"]])) or None,
        client["address"],
        client["listener"],
        local(client["since_ms"]),
        client["requests"],
        size(client["bytes_in"]),
        size(client["bytes_out"]),
        client["waits_for"],
    )
