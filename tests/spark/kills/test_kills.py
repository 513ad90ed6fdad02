"""
A transactional stream of real Spark while its driver, its executors and the server are killed: readers of committed
records find each record once. KILLS is the number of kills, SPARK_KILLS_SEED the seed of all that is random.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from kgateway.testing.kafka import Kafka
from tests.clients.transactions.topic_views import read
from tests.spark.kills.driver import Application
from tests.spark.kills.killer import KILLS, PARTITIONS, PATIENCE_S, SINK, SOURCE, Killer, fill

JOB = Path(__file__).parent / "job.py"
RECORDS_A_KILL = 3_000


@pytest.fixture
def query(kafka: Kafka, tmp_path: Path) -> Iterator[Application]:
    query = Application(tmp_path, str(JOB), kafka.bootstrap, SOURCE, SINK, str(tmp_path / "checkpoint"))
    yield query
    query.stop()


def test_each_record_once(kafka: Kafka, query: Application, tmp_path: Path) -> None:
    """
    Nothing is lost or doubled, whatever is killed.
    """
    written, killer = 0, Killer(kafka, query)
    while killer.count < KILLS:
        fill(kafka.bootstrap, SOURCE, written, RECORDS_A_KILL)
        written += RECORDS_A_KILL
        _wait_for_batches(query, tmp_path / "checkpoint" / "commits", 2)
        killer.strike()
    found = _wait_for_all(kafka, query, written)
    everything = read(kafka.bootstrap, SINK, PARTITIONS, "read_uncommitted")
    print(f"{written} records, {len(everything)} written; {query.starts} drivers; {killer}")
    doubled = sorted(number for number, times in found.items() if times > 1)
    assert not doubled, f"{len(doubled)} doubled: {doubled[:20]}"


def _wait_for_batches(query: Application, commits: Path, count: int) -> None:
    """
    Wait until this many more batches are committed, or nothing is left to commit.
    """
    deadline, before = monotonic() + PATIENCE_S, _last(commits)
    while _last(commits) < before + count:
        query.ensure()
        assert monotonic() < deadline, f"no batch is committed\n{query.output()}"
        sleep(0.1)


def _last(commits: Path) -> int:
    return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)


def _wait_for_all(kafka: Kafka, query: Application, count: int) -> Counter[int]:
    deadline = monotonic() + PATIENCE_S
    while len(found := _numbers(kafka.bootstrap)) < count:
        query.ensure()
        lost = sorted(set(range(count)) - found.keys())
        assert monotonic() < deadline, f"{len(lost)} are lost: {lost[:20]}\n{query.output()}"
        sleep(0.5)
    return found


def _numbers(bootstrap: str) -> Counter[int]:
    return Counter(int(row.value) for row in read(bootstrap, SINK, PARTITIONS, "read_committed"))
