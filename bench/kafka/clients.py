"""
What the workloads do with confluent-kafka: topics, random values, sending, counting.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.fetch import LARGE as LARGE_FETCHES
from bench.fetch import consumer
from bench.kafka.servers import Server
from bench.produce import FLUSH_S, LARGE, PARTITIONS, RECORD_BYTES, producer

_PATIENCE_S = 60
_NOT_YET = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)
_AT_ONCE = 10_000  # records


def random_values(size: int, count: int = 10_000) -> list[bytes]:
    """
    Enough different values that no batch has one twice.
    """
    rng = random.Random(1)
    return [rng.randbytes(size) for _ in range(count)]


def admin_of(server: Server) -> AdminClient:
    """
    An admin client, which must outlive its futures.
    """
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})


def create_topic(
    server: Server, topic: str, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
) -> None:
    """
    Create the same topic on both servers. Kafka's partitions get their leader a moment after the topic exists.
    """
    admin, new = admin_of(server), NewTopic(topic, partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([new])[topic].result(_PATIENCE_S)
    deadline = monotonic() + _PATIENCE_S
    while True:
        try:
            records_in(server, topic, partitions)
            return
        except KafkaException as early:
            if early.args[0].code() not in _NOT_YET or monotonic() > deadline:
                raise
        sleep(0.1)


def delete_topic(server: Server, topic: str) -> None:
    admin = admin_of(server)
    admin.delete_topics([topic])[topic].result(_PATIENCE_S)


def send(producer: Producer, topic: str, values: Sequence[bytes], count: int, partitions: int = PARTITIONS) -> None:
    """
    Send this many records, and wait until each is acknowledged or refused.
    """
    for number in range(count):
        producer.produce(topic, values[number % len(values)], partition=number % partitions)
    assert producer.flush(FLUSH_S) == 0


@contextmanager
def all_taken(server: Server, topic: str, count: int, partitions: int = PARTITIONS) -> Iterator[None]:
    """
    The topic must grow by so many records while this is entered: what a producer has sent may have been refused.
    """
    before = records_in(server, topic, partitions)
    yield
    taken = records_in(server, topic, partitions) - before
    assert taken == count, f"{server.name} has taken {taken} records of {count}"


def records_in(server: Server, topic: str, partitions: int = PARTITIONS) -> int:
    """
    The number of records, as the server reports it.
    """
    reader = consumer(server.bootstrap)
    ends = [reader.get_watermark_offsets(TopicPartition(topic, index), _PATIENCE_S) for index in range(partitions)]
    reader.close()
    return sum(high for _, high in ends)


def fill(server: Server, topic: str, count: int) -> None:
    """
    Fill a topic with large batches, for reading.
    """
    client = producer(server.bootstrap, topic, **LARGE)
    with all_taken(server, topic, count):
        send(client, topic, random_values(RECORD_BYTES), count)


@contextmanager
def reader(server: Server, topic: str, **settings: Any) -> Iterator[Consumer]:
    """
    A connected consumer of all partitions, from their beginning on.
    """
    client = consumer(server.bootstrap, **LARGE_FETCHES, **settings)
    client.list_topics(topic, _PATIENCE_S)
    yield client
    client.close()


def read(client: Consumer, topic: str, count: int) -> None:
    client.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    left = count
    while left:
        found = client.consume(min(left, _AT_ONCE), timeout=_PATIENCE_S)
        assert found, f"{left} records of {topic} are missing"
        assert not any(message.error() for message in found)
        left -= len(found)
