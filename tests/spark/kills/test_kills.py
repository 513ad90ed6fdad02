"""
A stream of real Spark, in transactions, while its driver, its executors and the server are killed: each record is in
the topic once, to who reads what is committed.

KILLS is how often something is killed, SPARK_KILLS_SEED what follows from chance.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka.servers import free_port
from kgateway.testing.kafka import Kafka
from tests.clients.transactions.numbers import read
from tests.spark.kills.driver import Query

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("SPARK_KILLS_SEED", "1"))
SOURCE, SINK, PARTITIONS = "numbers", "copied", 3
ALL = ("driver", "executor", "server")
RECORDS_A_KILL = 3_000
PATIENCE_S = 240


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway that is found at the same place after each kill.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{tmp_path / 'data'}", "--log-level", "warn", folder=tmp_path)
    kafka.start()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (SOURCE, SINK)]).values():
        made.result(PATIENCE_S)
    yield kafka
    kafka.stop()
    assert "Traceback" not in kafka.log, kafka.log


@pytest.fixture
def query(kafka: Kafka, tmp_path: Path) -> Iterator[Query]:
    query = Query(tmp_path, kafka.bootstrap, SOURCE, SINK)
    yield query
    query.stop()


def test_each_record_once(kafka: Kafka, query: Query, tmp_path: Path) -> None:
    """
    Nothing is lost and nothing doubled, whatever is killed.
    """
    chance, killed, written, turns = Random(SEED), Counter[str](), 0, list[str]()
    while killed.total() < KILLS:
        _fill(kafka.bootstrap, written, RECORDS_A_KILL)
        written += RECORDS_A_KILL
        _wait_for_batches(query, tmp_path / "checkpoint" / "commits", 2)
        sleep(chance.uniform(0, 1.5))  # at any moment of a batch
        turns = turns or chance.sample(ALL, len(ALL))
        killed[_kill(turns.pop(), kafka, query)] += 1
        del killed["nothing"]
    found = _wait_for_all(kafka, query, written)
    everything = read(kafka.bootstrap, SINK, PARTITIONS, "read_uncommitted")
    print(f"{written} records, {len(everything)} written; {query.starts} drivers; killed: {dict(killed)}")
    doubled = sorted(number for number, times in found.items() if times > 1)
    assert not doubled, f"{len(doubled)} doubled: {doubled[:20]}"


def _fill(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(SOURCE, b"%d" % number, b"%d" % (number % 50) if number % 3 else None)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def _kill(which: str, kafka: Kafka, query: Query) -> str:
    """
    What was killed.
    """
    if which == "driver":
        query.kill_driver()
    elif which == "executor":
        return which if query.kill_executor() else "nothing"
    else:
        kafka.kill()
        kafka.start()
    return which


def _wait_for_batches(query: Query, commits: Path, count: int) -> None:
    """
    Until so many more were committed, or there is nothing left to commit.
    """
    deadline, before = monotonic() + PATIENCE_S, _last(commits)
    while _last(commits) < before + count:
        query.ensure()
        assert monotonic() < deadline, f"no batch is committed\n{query.told()}"
        sleep(0.1)


def _last(commits: Path) -> int:
    return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)


def _wait_for_all(kafka: Kafka, query: Query, count: int) -> Counter[int]:
    deadline = monotonic() + PATIENCE_S
    while len(found := _numbers(kafka.bootstrap)) < count:
        query.ensure()
        lost = sorted(set(range(count)) - found.keys())
        assert monotonic() < deadline, f"{len(lost)} are lost: {lost[:20]}\n{query.told()}"
        sleep(0.5)
    return found


def _numbers(bootstrap: str) -> Counter[int]:
    return Counter(int(row.value) for row in read(bootstrap, SINK, PARTITIONS, "read_committed"))
