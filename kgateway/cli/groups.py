"""
`kgateway groups`: consumer groups of any server that speaks Kafka's protocol.
"""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator

from kgateway.cli import groups_delete, groups_describe, groups_list, groups_reset
from kgateway.cli.control import add_json
from kgateway.cli.groups_refused import Refused
from kgateway.client.address import Address
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.config.sources import BOOTSTRAP
from kgateway.observe.plain import printable
from kgateway.wire.errors import KafkaError

_DEFAULT = "127.0.0.1:9092"
_ADVICE = f"name a server with --bootstrap HOST:PORT or in ${BOOTSTRAP}"
_PATIENCE_S = 30.0
_PATIENCE_MAX_S = 86_400
_KINDS = {"list": groups_list, "describe": groups_describe, "reset-offsets": groups_reset, "delete": groups_delete}

Run = Callable[[Namespace, Cluster], Iterator[str]]


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, module in _KINDS.items():
        what = (module.__doc__ or "").strip().partition(": ")[2]
        kind = kinds.add_parser(name, help=what.partition(".")[0], description=what)
        kind.set_defaults(run_groups=module.run, check=lambda options: None)
        module.add_arguments(kind)  # some have a check of their own, for what no single option tells
        _add_server(kind)
        add_json(kind)


def _add_server(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        type=_addresses,
        default=os.environ.get(BOOTSTRAP) or _DEFAULT,
        help=f"a server of the cluster, or several with commas between; else ${BOOTSTRAP}, else {_DEFAULT}",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_PATIENCE_S,
        help=f"how long one answer is waited for, {_PATIENCE_S:g} if not given",
    )


def _addresses(text: str) -> list[Address]:
    try:
        return [Address.parse(part) for part in text.split(",")]
    except ValueError as error:
        raise ArgumentTypeError(f"{error}; {_ADVICE}") from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= _PATIENCE_MAX_S:
        raise ValueError
    return seconds


def run(options: Namespace) -> Iterator[str]:
    """
    The lines. Where there is no answer, or it is a refusal, the program ends with the reason and exit code 1; for a
    mistake in the command with 2, before anybody is asked.
    """
    options.check(options)
    run_kind: Run = options.run_groups
    try:
        with _cluster(options) as cluster:
            for text in run_kind(options, cluster):
                yield from map(printable, text.split("\n"))  # clients choose the names of groups
    except (KafkaError, Refused, Unanswered) as error:
        sys.exit(f"kgateway groups {options.kind}: {printable(str(error))}")


def _cluster(options: Namespace) -> Cluster:
    try:
        return Cluster(options.bootstrap, options.timeout)
    except Unanswered as error:
        raise Refused(f"{error}; {_ADVICE}") from error
