"""
Options shared by several commands, and parsers of their values.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.parser import Parser
from kgateway.config.sources import BOOTSTRAP, CLUSTER

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
_INT_MAX = (1 << 31) - 1


def add_bootstrap(parser: ArgumentParser, **given: Any) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-b",
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST[:PORT],...",
        help=f"servers of the cluster (default ${BOOTSTRAP}, or else {DEFAULT_BOOTSTRAP}); the default port is 9092",
        **given,
    )
    where.add_argument(
        "--cluster",
        metavar="CLUSTER",
        help=f"a cluster of kgateway.toml (default ${CLUSTER}, or else the default of that file)",
    )


def add_topics(parser: Parser, dest: str = "names", metavar: str = "TOPIC", **given: Any) -> None:
    parser.add_names(dest, "-t", "--topic", metavar=metavar, **given)


def add_groups(parser: Parser, dest: str = "groups", **given: Any) -> None:
    parser.add_names(dest, "-g", "--group", metavar="GROUP", **given)


def add_yes(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def add_states(parser: ArgumentParser, states: Sequence[str], which: str) -> None:
    """
    Add `--state`, in capitals or not, which limits a list.
    """
    known = {state.lower(): state for state in states}
    parser.add_argument(
        "--state",
        metavar="STATE",
        type=lambda text: known.get(text.lower(), text),
        choices=states,
        action="append",
        help=f"only {which} in this state; may be repeated: {', '.join(states)}",
    )


def pair(text: str) -> tuple[str, str]:
    """
    Parse NAME=VALUE; the value may be empty or contain equals signs.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def refuse_repeated(names: Sequence[str]) -> None:
    """
    UsageError if a name has two values, because one would be lost.
    """
    for number, name in enumerate(names):
        if name in names[:number]:
            raise UsageError(f"{name} is given twice: which value should it have?")


def positive(text: str, most: int = _INT_MAX) -> int:
    """
    A whole number of at least 1, as large as it can be in a request.
    """
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    if int(text) > most:
        raise ArgumentTypeError(f"must be at most {most}, not {text}")
    return int(text)


def rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return number


def indexes(text: str) -> list[int]:
    numbers = text.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise ArgumentTypeError(f"{text!r} is not N or N,N: partitions count from 0")
    return [int(number) for number in numbers]


def topic_partitions(text: str) -> tuple[str, list[int]]:
    """
    A topic and some of its partitions; an empty list means all.
    """
    name, colon, numbers_text = text.partition(":")
    numbers = numbers_text.split(",") if colon else []
    if not name or not all(number.isdecimal() for number in numbers):
        raise ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:N,N")
    return name, [int(number) for number in numbers]
