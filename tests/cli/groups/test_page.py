"""
docs/groups.md shows what `kgateway groups` prints.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kgateway.cli.main import main
from kgateway.testing.kafka import Kafka
from tests.cli.groups.gateway import commit, commit_as_nobody, gateway, members

PAGE = (Path(__file__).parents[3] / "docs" / "groups.md").read_text()
BLOCKS = re.findall(r"^```console\n(\$ kgateway groups .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
# Values that differ each time: ids of members, and the epochs that an assignment took.
CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![\w+/-])[\w+/-]{22}(?![\w+/-])|epoch \d+")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway with the groups of the page.
    """
    with gateway() as kafka:
        commit_as_nobody(kafka, "report", dict.fromkeys(range(4), 10))
        with (
            members(kafka, "billing", "billing-1", "billing-2") as billing,
            members(kafka, "audit", "audit", protocol="consumer") as audit,
        ):
            commit(billing, {0: 25, 1: 20, 2: 25, 3: 12})
            commit(audit, {0: 25, 1: 25, 2: 25})
            monkeypatch.setenv("KGATEWAY_BOOTSTRAP", kafka.bootstrap)
            monkeypatch.chdir(tmp_path)
            yield kafka


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """
    The output and the reason, as a terminal shows them.
    """
    line, _, file = command.partition(" > ")
    with suppress(SystemExit):
        main(line.split()[1:])
    told = capsys.readouterr()
    if file:
        Path(file).write_text(told.out)
        return told.err
    return told.out + told.err


def test_examples_match_the_output(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The commands run one after the other; what differs each time is left out.
    """
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        for command, shown in re.findall(r"^\$ (kgateway groups .*)\n((?:[^$\n].*\n|\n)*)", block, re.MULTILINE):
            told = printed(command, capsys).replace(kafka.bootstrap, "127.0.0.1:9092")
            assert CHANGING.sub("...", told) == CHANGING.sub("...", shown), command
