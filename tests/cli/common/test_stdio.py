"""
Stdin, stdout and stderr, some of which may be missing or full.
"""

from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kgateway.cli.common.output import cut
from kgateway.testing.kafka import Kafka
from tests.cli.shell import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """
    A shell with a gateway that has a topic `orders` with a record.
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
def test_an_unwritable_stdout_is_reported_in_a_line(shell: Shell, command: str, to: str, why: str) -> None:
    """
    A full or closed stdout ends the command with exit code 1.
    """
    told = f"kgateway {command.split(maxsplit=1)[0]}: stdout cannot be written: {why}\n"
    assert shell.run(f"kgateway {command} {to}") == (1, told)


def test_stdout_may_be_closed_if_nothing_is_printed(shell: Shell) -> None:
    """
    Producing with --quiet prints nothing.
    """
    assert shell.run("echo two | kgateway produce orders --quiet >&-") == (0, "")
    assert shell.run("kgateway consume orders --from -1 -q") == (0, "two\n")


def test_a_closed_stdin_is_reported_in_a_line(shell: Shell) -> None:
    """
    Only commands that read stdin need it.
    """
    told = "kgateway produce: stdin cannot be read: Bad file descriptor (0 records were delivered)\n"
    assert shell.run("kgateway produce orders <&-") == (1, told)
    assert shell.run("kgateway topics list --json <&- >/dev/null") == (0, "")


def test_a_closed_stderr_loses_messages(shell: Shell) -> None:
    """
    The messages are written to no other file, and the command succeeds.
    """
    assert shell.run("echo three | kgateway produce orders 2>&-") == (0, "")
    assert shell.run("kgateway consume orders --from -1 2>&-") == (0, "three\n")
    assert shell.run("kgateway consume nothing 2>&-") == (1, "")


@pytest.mark.parametrize("command", ["list", "describe über"])
def test_what_the_encoding_of_stdout_lacks_is_escaped(shell: Shell, command: str) -> None:
    assert shell.run("kgateway consume orders -n 1 -q --group über")[0] == 0
    code, text = shell.run(f"PYTHONIOENCODING=ascii kgateway groups {command}")
    assert (code, "\\xfcber" in text) == (0, True), text


def test_a_cut_text_ends_as_the_encoding_of_stdout_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, shown in (("utf-8", "0123456…"), ("ascii", "01234...")):
        monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO(), encoding=encoding))
        assert cut("0123456789", 8) == shown
