"""
A distributed Kafka Connect worker with `exactly.once.source.support=enabled` copies the lines of a file into a topic
while it and the server are killed: readers of committed records find each line once, in order.

KILLS is the number of kills, TRANSACTION_SEED the seed of all that is random.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kgateway.testing.kafka import Kafka
from tests.clients.application import kill_some
from tests.clients.connect.worker import PATIENCE_S, Worker
from tests.clients.transactions.topic_views import read

KILLS = int(os.environ.get("KILLS", "4"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))
SOURCE, TOPIC = "lines", "copied"
_LINES_A_KILL = 5_000


class Lines:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[bytes] = []

    def grow(self, count: int) -> None:
        added = [b"line %d" % number for number in range(len(self.written), len(self.written) + count)]
        with self.path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in added))
        self.written += added


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path / "lines.txt")


@pytest.fixture
def worker(lasting_kafka: Kafka, lines: Lines, tmp_path: Path) -> Iterator[Worker]:
    """
    A worker that copies the lines.
    """
    admin = AdminClient({"bootstrap.servers": lasting_kafka.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(PATIENCE_S)
    worker = Worker(lasting_kafka.bootstrap, tmp_path)
    worker.configure(
        SOURCE,
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(lines.path),
            "topic": TOPIC,
            "batch.size": "20",
            "exactly.once.support": "required",
            "transaction.boundary": "poll",
            "producer.override.transaction.timeout.ms": "10000",
        },
    )
    yield worker
    worker.kill()


def test_each_line_once(lasting_kafka: Kafka, worker: Worker, lines: Lines) -> None:
    """
    Lines copied after the last kill follow all that was done twice.
    """
    chance, killed, began = Random(SEED), Counter[str](), monotonic()
    for _ in range(KILLS):
        if chance.random() < 0.7:  # the other kills hit both while they start
            _wait_for_more(lasting_kafka, worker, lines)
        lines.grow(_LINES_A_KILL)
        sleep(chance.uniform(0, 1.5))  # at a random moment of their work
        killed[kill_some(chance, lasting_kafka, worker)] += 1
    _wait_for_more(lasting_kafka, worker, lines)
    copied = _copied(lasting_kafka)
    everything = len(read(lasting_kafka.bootstrap, TOPIC, 1, "read_uncommitted"))
    print(
        f"{len(copied)} lines, {everything} with the aborted, killed: {dict(killed)}, "
        f"tasks that failed: {worker.restarts}, {monotonic() - began:.0f} s"
    )
    assert copied == lines.written[: len(copied)]


def _wait_for_more(kafka: Kafka, worker: Worker, lines: Lines) -> None:
    """
    Wait while the file grows: the connector looks at what it has read and not sent only when there is more.
    """
    known, deadline = len(lines.written), monotonic() + PATIENCE_S
    while len(_copied(kafka)) <= known:
        lines.grow(1)
        states = worker.states(SOURCE)
        assert monotonic() < deadline, f"{states}\n{worker.output()}"
        sleep(0.2)


def _copied(kafka: Kafka) -> list[bytes]:
    return [row.value for row in read(kafka.bootstrap, TOPIC, 1, "read_committed")]
