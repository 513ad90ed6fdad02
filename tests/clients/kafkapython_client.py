"""
An adapter of kafka-python to the interface of all clients.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import BrokerResponseError, KafkaTimeoutError

from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.wire.errors import ErrorCode
from tests.clients.client import (
    BEGINNING,
    END,
    PATIENCE_S,
    PLAIN,
    REQUEST_BYTES_MAX,
    Refused,
    Sending,
    Topics,
)

UNKNOWN_TOPIC_PATIENCE_MS = 5_000


def _refused(error: BrokerResponseError) -> Refused:
    return Refused(error.errno, error)


def _record(found: Any) -> Record:
    return Record(
        found.offset, found.timestamp, found.key, found.value, tuple(Header(*header) for header in found.headers)
    )


class KafkaPythonReader:
    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        self._topic = topic
        self._consumer = KafkaConsumer(auto_offset_reset="earliest", check_crcs=True, **settings)

    def assign(self, starts: Mapping[int, int]) -> None:
        self._consumer.assign([self._partition(index) for index in starts])
        for index, start in starts.items():
            partition = self._partition(index)
            if start == BEGINNING:
                self._consumer.seek_to_beginning(partition)
            elif start == END:
                self._consumer.seek_to_end(partition)
                self._consumer.position(partition)
            else:
                self._consumer.seek(partition, start)

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._partition(partition), offset)

    def take(self, count: int) -> list[tuple[int, Record]]:
        deadline = monotonic() + PATIENCE_S
        found: list[tuple[int, Record]] = []
        while len(found) < count:
            left_ms = (deadline - monotonic()) * 1000
            assert left_ms > 0, "nothing comes"
            polled = self._consumer.poll(left_ms, max_records=count - len(found))
            found += [(message.partition, _record(message)) for messages in polled.values() for message in messages]
        return found

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        (found,) = self._consumer.offsets_for_times({self._partition(partition): timestamp}).values()
        return None if found is None else int(found.offset)

    def watermarks(self, partition: int) -> tuple[int, int]:
        asked = [self._partition(partition)]
        (low,), (high,) = self._consumer.beginning_offsets(asked).values(), self._consumer.end_offsets(asked).values()
        return low, high

    def close(self) -> None:
        self._consumer.close()

    def _partition(self, index: int) -> TopicPartition:
        return TopicPartition(self._topic, index)


class KafkaPython:
    def __init__(self, bootstrap: str, **settings: Any) -> None:
        self._settings = {"bootstrap_servers": bootstrap, **settings}

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        producer = KafkaProducer(
            compression_type=None if how.codec is Codec.NONE else how.codec.name.lower(),
            acks=how.acks,
            enable_idempotence=how.idempotent,
            batch_size=how.batch_bytes or KafkaProducer.DEFAULT_CONFIG["batch_size"],
            max_request_size=REQUEST_BYTES_MAX,
            max_block_ms=UNKNOWN_TOPIC_PATIENCE_MS,
            **self._settings,
        )
        try:
            futures = [
                producer.send(
                    topic, row.value, row.key, [tuple(h) for h in row.headers], partition, timestamp_ms=row.timestamp
                )
                for row in rows
            ]
            producer.flush(PATIENCE_S)
            return [future.get(PATIENCE_S).offset for future in futures]
        except BrokerResponseError as error:
            raise _refused(error) from None
        except KafkaTimeoutError as error:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, error) from None
        finally:
            producer.close()

    @contextmanager
    def reader(self, topic: str) -> Iterator[KafkaPythonReader]:
        reader = KafkaPythonReader(topic, self._settings)
        try:
            yield reader
        finally:
            reader.close()

    def topics(self) -> Topics:
        found = self._administer(lambda admin: admin.describe_topics())
        return {topic["name"]: len(topic["partitions"]) for topic in found}

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = {topic: {"num_partitions": partitions, "configs": dict(config)}}
        self._administer(lambda admin: admin.create_topics(wanted))

    def delete_topic(self, topic: str) -> None:
        self._administer(lambda admin: admin.delete_topics([topic]))

    def add_partitions(self, topic: str, total: int) -> None:
        self._administer(lambda admin: admin.create_partitions({topic: total}))

    def config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._administer(lambda admin: admin.describe_configs([resource], config_filter="all"))
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def _administer(self, task: Callable[[KafkaAdminClient], Any]) -> Any:
        admin = KafkaAdminClient(**self._settings)
        try:
            return task(admin)
        except BrokerResponseError as error:
            raise _refused(error) from None
        finally:
            admin.close()
