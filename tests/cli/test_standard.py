"""
Files that each program gets, and some do not.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.testing.kafka import Kafka
from tests.cli.shell import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """
    Before a gateway with a topic `orders` that has a record.
    """
    folder: Path = tmp_path_factory.mktemp("standard")
    with Kafka("--broker", "memory:") as kafka:
        shell = Shell(kafka, folder)
        for line in ("topics create orders --partitions 1", "produce orders -q"):
            assert shell.run(f"echo one | kgateway {line}")[0] == 0
        yield shell


@pytest.mark.parametrize("command", ["topics list", "configs describe topic orders", "consume orders", "apis"])
@pytest.mark.parametrize(
    ("to", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")], ids=["full", "closed"]
)
def test_an_output_that_takes_nothing(shell: Shell, command: str, to: str, why: str) -> None:
    """
    Is told of in one line.
    """
    told = f"kgateway {command.split(maxsplit=1)[0]}: stdout cannot be written: {why}\n"
    assert shell.run(f"kgateway {command} {to}") == (1, told)


def test_an_output_that_nobody_needs(shell: Shell) -> None:
    """
    May be closed.
    """
    assert shell.run("echo two | kgateway produce orders --quiet >&-") == (0, "")
    assert shell.run("kgateway consume orders --from -1 -q") == (0, "two\n")


def test_an_input_that_is_closed(shell: Shell) -> None:
    """
    Cannot be read, and is told of in one line; who does not read needs none.
    """
    told = "kgateway produce: stdin cannot be read: Bad file descriptor (0 records were delivered)\n"
    assert shell.run("kgateway produce orders <&-") == (1, told)
    assert shell.run("kgateway topics list --json <&- >/dev/null") == (0, "")


def test_no_place_for_messages(shell: Shell) -> None:
    """
    They are lost, and stand in no other place; the work is done.
    """
    assert shell.run("echo three | kgateway produce orders 2>&-") == (0, "")
    assert shell.run("kgateway consume orders --from -1 2>&-") == (0, "three\n")
    assert shell.run("kgateway consume nothing 2>&-") == (1, "")
