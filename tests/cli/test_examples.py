"""
The examples at the end of each help text.
"""

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kgateway.cli.main import parser as parser_of
from tests.docs.console import Session

COMMANDS = (
    *("options", "topic-configs", "apis", "clients", "why", "plugins", "loglevel", "profile", "topics", "configs"),
    *("produce", "consume", "groups", "transactions", "log", "clusters", "completion"),
)
PATIENCE_S = 30
LAST = ("kgateway transactions abort", "kgateway groups delete", "kgateway topics delete", "kgateway topics create")


def leaves(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    """
    The parsers of all subcommands, or the parser itself.
    """
    below = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in action.choices.values():
            yield from leaves(command)


def parsers_of(command: str) -> list[ArgumentParser]:
    """
    The parsers of a command and its subcommands.
    """
    [action] = [action for action in parser_of(None)._actions if isinstance(action, _SubParsersAction)]
    return [*leaves(action.choices[command])]


ALL = {leaf.prog: leaf for command in COMMANDS for leaf in parsers_of(command)}


def example(parser: ArgumentParser) -> str:
    """
    The line to run, as the help shows it.
    """
    heading, line = parser.format_help().splitlines()[-2:]
    assert heading == "example:"
    return line.removeprefix("  $ ")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """
    A session with a gateway that has what the examples name: topics with records in all partitions, a group with
    offsets, and an open transaction.
    """
    with Session(tmp_path) as session:
        session.serve()
        code, told = session.run(
            "kgateway topics create orders billing --partitions 4"
            "&& for p in 0 1 2 3; do seq 20 | kgateway produce orders --partition $p -q || exit 1; done"
            "&& kgateway consume orders --group billing -n 5 -q"
        )
        assert code == 0, told
        producer = Producer({"bootstrap.servers": session.bootstrap, "transactional.id": "billing-1", "log_level": 0})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("billing", b"value", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        yield session
        producer.purge()


def test_all_subcommands_have_examples() -> None:
    """
    Each example begins with the name of its command, or pipes something into it.
    """
    assert len(ALL) == 8 + 7 + 6 + 1 + 1 + 4 + 3 + 2 + 2
    for name, parser in ALL.items():
        assert example(parser).rpartition("| ")[2].startswith(name), name


def test_all_examples_succeed(session: Session) -> None:
    """
    Examples that delete run last, followed by those that create again.
    """
    for name in [*(name for name in ALL if name not in LAST), *LAST]:
        code, told = session.run(example(ALL[name]))
        assert code == 0, f"{name}: {told}"
