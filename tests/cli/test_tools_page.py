"""
docs/tools.md shows what the tools print.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.testing.kafka import Kafka
from tests.cli.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
_BLOCK = re.compile(r"^```console\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# Values that differ each time: durations, places and disk usage.
_CHANGING = re.compile(r" in [\d.]+ s: .*|127\.0\.0\.1:\d+|[\d.]+ (bytes|KiB)|\"timestamp\": \d+| +")


def examples() -> list[tuple[str, str]]:
    """
    Each command, and its output on the page.
    """
    return [found for block in _BLOCK.findall(PAGE.read_text()) for found in _COMMAND.findall(block)]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """
    A shell with a new gateway.
    """
    with Kafka("--group-initial-rebalance-delay-ms", "0") as kafka:
        yield Shell(kafka, tmp_path)


def test_examples_match_the_output(shell: Shell) -> None:
    """
    The commands run one after the other; what differs each time is left out.
    """
    assert len(examples()) > 30
    for command, shown in examples():
        _, told = shell.run(command)
        assert _CHANGING.sub(" ", told) == _CHANGING.sub(" ", shown), command
