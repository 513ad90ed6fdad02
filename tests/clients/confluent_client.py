"""
An adapter of confluent-kafka, and so of librdkafka, to the interface of all clients.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

# Type checkers do not see that three of these are exported.
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic  # type: ignore[attr-defined]

from kgateway.records.record import Header, Record
from tests.clients.client import END, PATIENCE_S, PLAIN, REQUEST_BYTES_MAX, Refused, Sending, Topics


def _refused(error: KafkaError) -> Exception:
    # librdkafka's own errors are negative.
    return Refused(error.code(), error) if error.code() > 0 else KafkaException(error)


def _record(message: Message) -> Record:
    offset, headers = message.offset(), tuple(Header(*header) for header in message.headers() or ())
    assert offset is not None
    return Record(offset, message.timestamp()[1], message.key(), message.value(), headers)


class ConfluentReader:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",  # a group id is required, though unused
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "check.crcs": True,
                "enable.partition.eof": True,
            }
        )

    def assign(self, starts: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, index, start) for index, start in starts.items()])
        for _ in [start for start in starts.values() if start == END]:
            assert self._poll(monotonic() + PATIENCE_S).error(), "a record, where the end was to be"

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition, offset))

    def take(self, count: int) -> list[tuple[int, Record]]:
        deadline = monotonic() + PATIENCE_S
        found: list[tuple[int, Record]] = []
        while len(found) < count:
            message = self._poll(deadline)
            if not message.error():
                index = message.partition()
                assert index is not None
                found.append((index, _record(message)))
        return found

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        (found,) = self._consumer.offsets_for_times([TopicPartition(self._topic, partition, timestamp)], PATIENCE_S)
        return None if found.offset == END else found.offset

    def watermarks(self, partition: int) -> tuple[int, int]:
        found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), PATIENCE_S)
        assert found
        return found

    def close(self) -> None:
        self._consumer.close()

    def _poll(self, deadline: float) -> Message:
        """
        The next record, or None if none has arrived yet.
        """
        message = self._consumer.poll(max(0, deadline - monotonic()))
        assert message is not None, "nothing comes"  # false for an error without a value
        error = message.error()
        assert not error or error.code() == KafkaError._PARTITION_EOF, error
        return message


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": how.codec.name.lower(),
                "acks": how.acks,
                "enable.idempotence": how.idempotent,
                "batch.size": how.batch_bytes or 1_000_000,  # its default
                "linger.ms": 1_000,  # until the flush: however slow the machine is, what is sent together is a batch
                "message.max.bytes": REQUEST_BYTES_MAX,
                "topic.metadata.propagation.max.ms": 1_000,  # how long an unknown topic may still be about to appear
            }
        )
        place: dict[str, Any] = {} if partition is None else {"partition": partition}
        outcomes: list[tuple[KafkaError | None, Message]] = []
        for row in rows:
            producer.produce(
                topic,
                row.value,
                row.key,
                timestamp=row.timestamp,
                headers=list(row.headers),
                on_delivery=lambda *outcome: outcomes.append(outcome),
                **place,
            )
        assert producer.flush(PATIENCE_S) == 0
        for error, _ in outcomes:
            if error:
                raise _refused(error)
        return [message.offset() or 0 for _, message in outcomes]

    @contextmanager
    def reader(self, topic: str) -> Iterator[ConfluentReader]:
        reader = ConfluentReader(self._bootstrap, topic)
        try:
            yield reader
        finally:
            reader.close()

    def topics(self) -> Topics:
        found = self._admin.list_topics(timeout=PATIENCE_S).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config))
        self._wait(self._admin.create_topics([wanted]))

    def delete_topic(self, topic: str) -> None:
        self._wait(self._admin.delete_topics([topic]))

    def add_partitions(self, topic: str, total: int) -> None:
        self._wait(self._admin.create_partitions([NewPartitions(topic, total)]))

    def config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._wait(self._admin.describe_configs([resource]))
        return {entry.name: entry.value for entry in found.values()}

    def _wait(self, futures: Mapping[Any, Future[Any]]) -> Any:
        (future,) = futures.values()
        try:
            return future.result(PATIENCE_S)
        except KafkaException as error:
            raise _refused(error.args[0]) from None
