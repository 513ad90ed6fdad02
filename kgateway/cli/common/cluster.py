"""
Commands that connect to a Kafka cluster, with their options, timeouts and errors.
"""

import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kgateway.cli.common.cluster_profiles import DEFAULT, Target, target
from kgateway.cli.common.errors import FAILED, MISTAKE, UNREACHABLE, CommandError, Problem, UsageError
from kgateway.cli.common.json_document import Json, error_of
from kgateway.cli.common.output import safe_lines
from kgateway.cli.common.parser import Command, Parser, add_example
from kgateway.cli.common.values import add_bootstrap
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address, NothingListens, Unanswered
from kgateway.config.sources import BOOTSTRAP
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed, Unencodable

_PATIENCE_S = 30.0
_PATIENCE_MAX_S = 86_400


def cluster_command(
    add_arguments: Callable[[Parser], None],
    run: Callable[[Namespace, Cluster], Iterator[str | Json]],
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
        add_example(parser, example)

    def run_connected(options: Namespace) -> Iterator[str | Json]:
        check(options)
        choose_cluster(options)
        return _output(options, run)

    return Command(add_all, run_connected, has_json)


def add_server(parser: ArgumentParser) -> None:
    add_bootstrap(parser, type=addresses)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_PATIENCE_S,
        help=f"how long to wait for one response (default {_PATIENCE_S:g})",
    )


def choose_cluster(options: Namespace) -> None:
    """
    Set `bootstrap` where the command line does not.
    """
    if options.bootstrap is None:
        found = options.target = target(options.cluster)
        try:
            options.bootstrap = addresses(found.bootstrap)
        except ArgumentTypeError as error:
            raise UsageError(f"{found.source}: {error}") from error


def _output(options: Namespace, run: Callable[[Namespace, Cluster], Iterator[str | Json]]) -> Iterator[str | Json]:
    try:
        with _connected(options) as cluster:
            for part in run(options, cluster):  # clients choose the names of groups and topics
                yield from safe_lines(part) if isinstance(part, str) else [part]
    except KafkaError as error:
        raise CommandError(str(error), code=error.code.name) from error
    except Unanswered as error:
        raise CommandError(str(error), code=UNREACHABLE) from error
    except Malformed as error:
        raise CommandError(str(error)) from error
    except Unencodable as error:
        raise CommandError(f"that does not fit into a request: {error}", MISTAKE) from error


def _connected(options: Namespace) -> Cluster:
    cluster = Cluster(options.bootstrap, options.timeout)
    try:
        cluster.any_server()
    except Unanswered as error:
        raise unreachable(error, options) from error
    return cluster


def unreachable(error: Unanswered, options: Namespace, exit_code: int = FAILED) -> CommandError:
    """
    The failure to reach a server, with what named its address, unless that is the command line.
    """
    named: Target | None = vars(options).get("target")
    if named is None:
        return CommandError(str(error), exit_code, UNREACHABLE)
    advice = f"that is {named.source}"
    if named.source == DEFAULT:
        start = ", or start one with `kgateway serve`" if isinstance(error, NothingListens) else ""
        advice = f"name a server with --bootstrap HOST[:PORT] or in ${BOOTSTRAP}{start}"
    return CommandError(f"{error}; {advice}", exit_code, UNREACHABLE)


class Done(NamedTuple):
    """
    What a server has done to a topic or group, where that is worth a note, and for programs.
    """

    note: str = ""
    fields: Json = {}


def do_to_each(
    options: Namespace,
    cluster: Cluster,
    kind: str,
    names: Sequence[str],
    done: str,
    work: Callable[[str], Done | None],
    reasons: Mapping[ErrorCode, str] | None = None,
) -> Iterator[str | Json]:
    """
    Apply an action to each topic or group, and print a line for each; the final CommandError has the reasons of all
    that were refused.
    """

    outcomes: dict[str, Done | Problem] = {}
    for name in dict.fromkeys(names):
        try:
            outcomes[name] = cluster.retry(partial(work, name)) or Done()
        except KafkaError as error:
            outcomes[name] = Problem.of(error, (reasons or {}).get(error.code))
    problems = {name: one for name, one in outcomes.items() if isinstance(one, Problem)}
    successes = {name: one for name, one in outcomes.items() if isinstance(one, Done)}
    if options.json:
        key = done.partition(" ")[0]
        rows = {name: {kind: name, key: True} | one.fields for name, one in successes.items()}
        rows |= {name: {kind: name, key: False} | error_of(one) for name, one in problems.items()}
        yield {f"{kind}s": [rows[name] for name in outcomes]}
    else:
        yield from (f"{name}: {done}{one.note and f', {one.note}'}" for name, one in successes.items())
    refuse_parts({f"{shlex.quote(name)} was not {done}": one for name, one in problems.items()})


def refuse_parts(problems: Mapping[str, Problem]) -> None:
    """
    The CommandError of parts that failed, with the code of the first.
    """
    if problems:
        message = "; ".join(f"{what}: {problem.message}" for what, problem in problems.items())
        raise CommandError(message, code=next(iter(problems.values())).code)


def addresses(text: str) -> list[Address]:
    try:
        return [Address.parse(part) for part in text.split(",")]
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _PATIENCE_MAX_S:
        raise ArgumentTypeError(f"must be a number of seconds above 0, up to {_PATIENCE_MAX_S}, not {text!r}")
    return seconds
