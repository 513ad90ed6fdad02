"""
What the subcommands share that ask a Kafka cluster: which one, for how long, and how their failures are told.
"""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType

from kgateway.cli.control import add_json
from kgateway.cli.example import add_example
from kgateway.cli.refused import Refused
from kgateway.client.address import Address
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.config.sources import BOOTSTRAP
from kgateway.observe.plain import printable
from kgateway.wire.errors import KafkaError
from kgateway.wire.malformed import Malformed, Unencodable

_DEFAULT = "127.0.0.1:9092"
_ADVICE = f"name a server with --bootstrap HOST:PORT or in ${BOOTSTRAP}"
_PATIENCE_S = 30.0
_PATIENCE_MAX_S = 86_400
_MISTAKEN = 2  # as for other mistakes in a command

Run = Callable[[Namespace, Cluster], Iterator[str]]


def add_kinds(parser: ArgumentParser, modules: Mapping[str, ModuleType]) -> None:
    """
    The subcommands of one that has several. Each is a module, with `EXAMPLE`, `add_arguments` and `run`, that begins by
    saying what it does.
    """
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, module in modules.items():
        what = (module.__doc__ or "").strip().partition(": ")[2]
        kind = kinds.add_parser(name, help=what.partition(".")[0], description=what)
        kind.set_defaults(run_kind=module.run, check=lambda options: None)
        module.add_arguments(kind)  # some have a check of their own, for what no single option tells
        add_server(kind)
        add_json(kind)
        add_example(kind, module.EXAMPLE)


def add_server(parser: ArgumentParser) -> None:
    """
    The options that say which cluster is meant.
    """
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


def run_kind(options: Namespace) -> Iterator[str]:
    """
    The lines of the subcommand that was chosen.
    """
    options.check(options)
    return told(f"{options.command} {options.kind}", options, partial(options.run_kind, options))


def told(command: str, options: Namespace, work: Callable[[Cluster], Iterator[str]]) -> Iterator[str]:
    """
    The lines. Where there is no answer, or it is a refusal, the program ends with the reason and exit code 1; mistakes
    in the command, with 2, were told before anybody is asked.
    """
    try:
        with _cluster(options) as cluster:
            for text in work(cluster):
                yield from map(printable, text.split("\n"))  # clients choose the names of groups and topics
    except (KafkaError, Malformed, Refused, Unanswered) as error:
        sys.exit(f"kgateway {command}: {printable(str(error))}")
    except Unencodable as error:
        print(f"kgateway {command}: no request has room for that: {printable(str(error))}", file=sys.stderr)
        sys.exit(_MISTAKEN)


def _addresses(text: str) -> list[Address]:
    try:
        return [Address.parse(part) for part in text.split(",")]
    except ValueError as error:
        raise ArgumentTypeError(f"{error}; {_ADVICE}") from error


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _PATIENCE_MAX_S:
        raise ArgumentTypeError(f"{text!r} is no number of seconds above 0, up to {_PATIENCE_MAX_S}")
    return seconds


def _cluster(options: Namespace) -> Cluster:
    try:
        return Cluster(options.bootstrap, options.timeout)
    except Unanswered as error:
        raise Refused(f"{error}; {_ADVICE}") from error
