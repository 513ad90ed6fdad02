"""
Commands that connect to a Kafka cluster, with their options, timeouts and errors.
"""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kgateway.cli.common.errors import MISTAKE, CommandError
from kgateway.cli.common.output import as_json, safe_lines
from kgateway.cli.common.parser import Command, Parser, add_example
from kgateway.cli.common.values import DEFAULT_BOOTSTRAP, add_bootstrap, add_json
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address, Unanswered
from kgateway.config.sources import BOOTSTRAP
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed, Unencodable

_ADVICE = f"name a server with --bootstrap HOST[:PORT] or in ${BOOTSTRAP}"
_PATIENCE_S = 30.0
_PATIENCE_MAX_S = 86_400


def cluster_command(
    add_arguments: Callable[[Parser], None],
    run: Callable[[Namespace, Cluster], Iterator[str]],
    example: str,
    *,
    check: Callable[[Namespace], None] = lambda options: None,
    has_json: bool = True,
) -> Command:
    """
    A command that runs with a connection to a cluster. `check` validates the options before connecting.
    """

    def add_all(parser: Parser) -> None:
        add_arguments(parser)
        add_server(parser)
        if has_json:
            add_json(parser)
        add_example(parser, example)

    def run_connected(options: Namespace) -> Iterator[str]:
        check(options)
        return _lines(options, run)

    return Command(add_all, run_connected)


def add_server(parser: ArgumentParser) -> None:
    add_bootstrap(parser, type=addresses, default=os.environ.get(BOOTSTRAP) or DEFAULT_BOOTSTRAP)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_PATIENCE_S,
        help=f"how long one answer is waited for, {_PATIENCE_S:g} if not given",
    )


def _lines(options: Namespace, run: Callable[[Namespace, Cluster], Iterator[str]]) -> Iterator[str]:
    try:
        with _connected(options) as cluster:
            for text in run(options, cluster):
                yield from safe_lines(text)
    except (KafkaError, Malformed, Unanswered) as error:
        raise CommandError(str(error)) from error
    except Unencodable as error:
        raise CommandError(f"no request has room for that: {error}", MISTAKE) from error


def _connected(options: Namespace) -> Cluster:
    cluster = Cluster(options.bootstrap, options.timeout)
    try:
        cluster.any_server()
    except Unanswered as error:
        raise CommandError(f"{error}; {_ADVICE}") from error
    return cluster


def do_to_each(
    options: Namespace,
    cluster: Cluster,
    kind: str,
    names: Sequence[str],
    done: str,
    work: Callable[[str], Any],
    reasons: Mapping[ErrorCode, str] | None = None,
) -> Iterator[str]:
    """
    Apply an action to each topic or group, and print a line for each; the final CommandError has the reasons of all
    that were refused.
    """

    def problem(name: str) -> str | None:
        try:
            cluster.retry(partial(work, name))
        except KafkaError as error:
            return (reasons or {}).get(error.code, str(error))
        return None

    problems = {name: problem(name) for name in dict.fromkeys(names)}
    if options.json:
        key = done.partition(" ")[0]
        yield as_json({f"{kind}s": [{kind: name, key: not why, "problem": why} for name, why in problems.items()]})
    else:
        yield from (f"{name}: {done}" for name, why in problems.items() if not why)
    refused = [f"{name} is not {done}: {why}" for name, why in problems.items() if why]
    if refused:
        raise CommandError("; ".join(refused))


def addresses(text: str) -> list[Address]:
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
        raise ArgumentTypeError(f"must be a number of seconds above 0, up to {_PATIENCE_MAX_S}, not {text!r}")
    return seconds
