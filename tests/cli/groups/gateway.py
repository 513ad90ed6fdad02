"""
A gateway with the groups that docs/groups.md shows.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import monotonic

from confluent_kafka import Consumer, Producer, TopicPartition

from kgateway.testing.kafka import Kafka
from tests.docs.console import Session

TOPIC, PARTITIONS, RECORDS = "orders", 4, 25
BEGAN_MS = 1_795_284_000_000  # 2026-11-21T18:00:00Z
_PATIENCE_S = 30


@contextmanager
def gateway() -> Iterator[Kafka]:
    """
    A gateway with records and without groups.
    """
    fast = ("--group-initial-rebalance-delay-ms", "0", "--group-consumer-heartbeat-interval-ms", "100")
    with Kafka("--broker", "memory:", *fast) as kafka:
        fill(kafka.bootstrap)
        yield kafka


def fill(bootstrap: str) -> None:
    """
    Produce the records.
    """
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(PARTITIONS * RECORDS):
        producer.produce(TOPIC, b"an order", partition=number % PARTITIONS, timestamp=BEGAN_MS + number * 1000)
    producer.flush()


@contextmanager
def members(
    kafka: Kafka | Session, group_id: str, *clients: str, protocol: str = "classic", **config: str
) -> Iterator[Consumer]:
    """
    Run a group with a member for each client, which share the partitions evenly; yields the first member.
    """
    with ExitStack() as stack:
        joined: list[Consumer] = []
        for client in clients:
            given = {key.replace("_", "."): value for key, value in config.items()}
            consumer = Consumer(
                {
                    "bootstrap.servers": kafka.bootstrap,
                    "group.id": group_id,
                    "client.id": client,
                    "group.protocol": protocol,
                    "enable.auto.commit": False,
                    **given,
                }
            )
            stack.callback(consumer.close)
            consumer.subscribe([TOPIC])
            joined.append(consumer)
            _settle(joined)
        yield joined[0]


def _settle(consumers: list[Consumer]) -> None:
    deadline = monotonic() + _PATIENCE_S
    while not _shared(consumers):
        assert monotonic() < deadline, "the group does not settle"
        for consumer in consumers:
            consumer.poll(0.05)


def _shared(consumers: list[Consumer]) -> bool:
    counts = [len(consumer.assignment()) for consumer in consumers]
    return sum(counts) == PARTITIONS and max(counts) - min(counts) <= 1


def commit(consumer: Consumer, offsets: Mapping[int, int]) -> None:
    """
    Commit the offsets of partitions.
    """
    places = [TopicPartition(TOPIC, index, offset) for index, offset in offsets.items()]
    for answered in consumer.commit(offsets=places, asynchronous=False):
        assert answered.error is None


def commit_as_nobody(kafka: Kafka | Session, group_id: str, offsets: Mapping[int, int]) -> None:
    """
    Commit offsets as a group without members.
    """
    with members(kafka, group_id, "gone") as consumer:
        commit(consumer, offsets)
