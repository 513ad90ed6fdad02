"""
Copies of a topic in transactions, while the server is killed again and again, workers are replaced by others with the
same transactional id, and some abort: each record of the input is in the output once, in order, to who reads what is
committed.

KILLS is how often the server is killed, TRANSACTION_SEED what follows from chance.
"""

import os
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
from tests.clients.transactions.copying import INPUT, OUTPUT, PATIENCE_S, Copier
from tests.clients.transactions.numbers import read

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))
PARTITIONS, WORKERS = 3, 3
_RECORDS_A_KILL = 600


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway that is found at the same place after each kill.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{tmp_path / 'data'}", "--log-level", "warn", folder=tmp_path)
    kafka.start()
    yield kafka
    kafka.stop()
    assert "Traceback" not in kafka.log, kafka.log


def _fill(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(INPUT, b"%d" % number, b"%d" % (number % 7), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def _read(bootstrap: str, isolation: str) -> dict[int, list[int]]:
    """
    The numbers in each partition of the output.
    """
    found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    for row in read(bootstrap, OUTPUT, PARTITIONS, isolation):
        found[row.partition].append(int(row.value))
    return found


def test_each_record_once(kafka: Kafka) -> None:
    """
    And nothing that was aborted, however often the server dies.
    """
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
        made.result(PATIENCE_S)
    chance, filled = Random(SEED), 0
    copiers = [Copier(kafka.bootstrap, number % WORKERS, SEED + number) for number in range(WORKERS)]
    for copier in copiers:
        copier.start()
    for _ in range(KILLS):
        _fill(kafka.bootstrap, filled, _RECORDS_A_KILL)
        filled += _RECORDS_A_KILL
        sleep(chance.uniform(0.3, 2.0))  # at any moment of what they do
        kafka.kill()
        kafka.start()
    expected = {partition: list(range(partition, filled, PARTITIONS)) for partition in range(PARTITIONS)}
    deadline, found = monotonic() + PATIENCE_S * 2, _read(kafka.bootstrap, "read_committed")
    while sum(map(len, found.values())) < filled and monotonic() < deadline:
        found = _read(kafka.bootstrap, "read_committed")
    for copier in copiers:
        copier.stop()
    for copier in copiers:
        if copier.failure:
            raise copier.failure
    everything = _read(kafka.bootstrap, "read_uncommitted")
    told = [(copier.commits, copier.aborts, copier.lives) for copier in copiers]
    print(f"{filled} records, {sum(map(len, everything.values()))} written; commits, aborts, lives: {told}")
    for partition, numbers in found.items():
        assert numbers == expected[partition], _what_is_wrong(numbers, expected[partition])


def _what_is_wrong(numbers: list[int], expected: list[int]) -> str:
    lost, doubled = sorted(set(expected) - set(numbers)), sorted({one for one in numbers if numbers.count(one) > 1})
    return f"lost: {lost[:20]}, doubled: {doubled[:20]}, {len(numbers)} of {len(expected)}"
