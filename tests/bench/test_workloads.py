"""
The results that workloads derive from outputs and records.
"""

from importlib import import_module
from pathlib import Path

import pytest

from bench.kafka import __main__ as command
from bench.kafka.crowd import Tally
from bench.kafka.latency import percentile
from bench.kafka.produce_java import rate

KAFKA_SAYS = """\
24802 records sent, 4960.4 records/sec (4.73 MB/sec), 1842.3 ms avg latency, 4226.0 ms max latency.
50000 records sent, 8123.4 records/sec (7.75 MB/sec), 1842.31 ms avg latency, 4226.00 ms max latency, \
1 ms 50th, 2 ms 95th, 3 ms 99th, 4 ms 99.9th.
"""


def test_every_workload_is_run() -> None:
    """
    The command knows each module with a workload, and each has rows.
    """
    folder = Path(str(command.__file__)).parent
    having = {file.stem for file in folder.glob("*.py") if "\nWORKLOAD = " in file.read_text()}
    assert having == set(command.MEASURED)
    assert all(import_module(f"bench.kafka.{name}").WORKLOAD.rows for name in having)


def test_unknown_workloads_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The command lists the known ones.
    """
    with pytest.raises(SystemExit, match="2"):
        command.main(["produce_batches", "fetch"])
    assert "there is no fetch: it is one of produce_batches, " in capsys.readouterr().err


def test_the_command_needs_kafka(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Without the jars it says where to get them.
    """
    monkeypatch.delenv("KAFKA_JARS", raising=False)
    with pytest.raises(SystemExit, match="2"):
        command.main([])
    assert "run tox -e bench-kafka" in capsys.readouterr().err


def test_rate_of_the_whole_run() -> None:
    """
    Interim results of Kafka's program do not count.
    """
    assert rate(KAFKA_SAYS, 50_000) == 8123.4


def test_rate_of_another_run() -> None:
    """
    A summary of too few records is refused.
    """
    with pytest.raises(ValueError, match="unpack"):
        rate(KAFKA_SAYS, 60_000)


def test_percentile() -> None:
    """
    The percentile is a measured value: of a hundred, one may be above the 99th percentile.
    """
    hundred = [float(value) for value in range(100, 0, -1)]
    assert [percentile(hundred, percent) for percent in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7.0], 99) == 7


def test_tally_of_all_records() -> None:
    """
    Records in order, each once, are correct as soon as there are enough.
    """
    tally = Tally()
    tally.take(range(3), 1.0)
    assert tally.verdict(5) == "5 records acknowledged, 3 received"
    tally.take(range(3, 5), 2.0)
    assert (tally.verdict(5), tally.last_at) == ("", 2.0)


@pytest.mark.parametrize("offsets", [[0, 1, 1], [0, 2, 3], [1, 0, 2]], ids=["twice", "missing", "out of order"])
def test_tally_of_wrong_records(offsets: list[int]) -> None:
    """
    The right number of records is not enough.
    """
    tally = Tally()
    tally.take(offsets, 1.0)
    assert "instead of" in tally.verdict(3)
