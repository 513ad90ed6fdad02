"""
What docs/tools.md shows is what the tools print.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.testing.kafka import Kafka
from tests.cli.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
_BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What is another one each time: how long it took, where it ran, and what a disk takes.
_CHANGING = re.compile(r" in [\d.]+ s: .*|127\.0\.0\.1:\d+|[\d.]+ (bytes|KiB)|\"timestamp\": \d+| +")


def examples() -> list[tuple[str, str]]:
    """
    The commands and what is shown of each.
    """
    return [found for block in _BLOCK.findall(PAGE.read_text()) for found in _COMMAND.findall(block)]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """
    Before a gateway that was just started.
    """
    with Kafka("--group-initial-rebalance-delay-ms", "0") as kafka:
        yield Shell(kafka, tmp_path)


def test_the_examples_are_true(shell: Shell) -> None:
    """
    One command after the other, but for what is another one each time.
    """
    assert len(examples()) > 30
    for command, shown in examples():
        _, told = shell.run(command)
        assert _CHANGING.sub(" ", told) == _CHANGING.sub(" ", shown), command
