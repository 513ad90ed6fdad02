"""
Transactions of confluent-kafka for the workloads, and a check that a read_committed consumer sees all of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Producer

from bench.kafka.clients import records_in
from bench.kafka.servers import Server
from bench.produce import LARGE, PARTITIONS

_PATIENCE_S = 60


def transacting(server: Server, transactional_id: str, **settings: Any) -> Producer:
    """
    A producer with large batches, after init_transactions.
    """
    usual = {"bootstrap.servers": server.bootstrap, "transactional.id": transactional_id, "log_level": 0}
    made = Producer({**usual, **LARGE, **settings})
    made.init_transactions(_PATIENCE_S)
    return made


def transact(producer: Producer, topic: str, values: Sequence[bytes], count: int, each: int) -> None:
    """
    Have so many records committed, so many at a time.
    """
    for size in sizes(count, each):
        producer.begin_transaction()
        for number in range(size):
            producer.produce(topic, values[number % len(values)], partition=number % PARTITIONS)
        producer.commit_transaction(_PATIENCE_S)


def sizes(count: int, each: int) -> list[int]:
    """
    The number of records in each transaction.
    """
    return [min(each, count - start) for start in range(0, count, each)]


@contextmanager
def all_committed(server: Server, topic: str, *transactions: int) -> Iterator[None]:
    """
    Transactions of so many records must be made while this is entered. Each leaves a marker in every partition that it
    has written to, which a commit need not wait for.
    """
    grows = sum(records + min(records, PARTITIONS) for records in transactions)
    before = records_in(server, topic)  # that are stable
    yield
    deadline = monotonic() + _PATIENCE_S
    while (grown := records_in(server, topic) - before) < grows and monotonic() < deadline:
        sleep(0.05)
    assert grown == grows, f"{server.name} has {grown} more offsets that are stable, and should have {grows}"
