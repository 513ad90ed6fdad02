"""
An adapter of aiokafka to the interface of all clients.
"""

from asyncio import Runner, gather
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError, for_code

from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from tests.clients.client import BEGINNING, END, PATIENCE_S, PLAIN, REQUEST_BYTES_MAX, Refused, Sending, Topics


def _refused(error: BrokerResponseError) -> Refused:
    return Refused(error.errno, error)


def _record(found: Any) -> Record:
    return Record(
        found.offset, found.timestamp, found.key, found.value, tuple(Header(*header) for header in found.headers)
    )


class AioKafkaReader:
    """
    A consumer of aiokafka, whose loop runs only during a call.
    """

    def __init__(self, runner: Runner, consumer: AIOKafkaConsumer, topic: str) -> None:
        self._run = runner.run
        self._consumer = consumer
        self._topic = topic

    def assign(self, starts: Mapping[int, int]) -> None:
        self._run(self._assign(starts))

    async def _assign(self, starts: Mapping[int, int]) -> None:
        self._consumer.assign([self._partition(index) for index in starts])
        for index, start in starts.items():
            partition = self._partition(index)
            if start == BEGINNING:
                await self._consumer.seek_to_beginning(partition)
            elif start == END:
                await self._consumer.seek_to_end(partition)
                await self._consumer.position(partition)
            else:
                self._consumer.seek(partition, start)

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._partition(partition), offset)

    def take(self, count: int) -> list[tuple[int, Record]]:
        return self._run(self._take(count))

    async def _take(self, count: int) -> list[tuple[int, Record]]:
        deadline = monotonic() + PATIENCE_S
        found: list[tuple[int, Record]] = []
        while len(found) < count:
            left_ms = round((deadline - monotonic()) * 1000)
            assert left_ms > 0, "nothing comes"
            polled = await self._consumer.getmany(timeout_ms=left_ms, max_records=count - len(found))
            found += [(message.partition, _record(message)) for messages in polled.values() for message in messages]
        return found

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        (found,) = self._run(self._consumer.offsets_for_times({self._partition(partition): timestamp})).values()
        return None if found is None else int(found.offset)

    def watermarks(self, partition: int) -> tuple[int, int]:
        asked = [self._partition(partition)]
        (low,) = self._run(self._consumer.beginning_offsets(asked)).values()
        (high,) = self._run(self._consumer.end_offsets(asked)).values()
        return low, high

    def _partition(self, index: int) -> TopicPartition:
        return TopicPartition(self._topic, index)


class AioKafka:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        with Runner() as runner:
            return runner.run(self._send(topic, rows, partition, how))

    async def _send(self, topic: str, rows: Sequence[Record], partition: int | None, how: Sending) -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if how.codec is Codec.NONE else how.codec.name.lower(),
            acks=how.acks,
            enable_idempotence=how.idempotent,
            max_batch_size=how.batch_bytes or 16_384,  # its default
            max_request_size=REQUEST_BYTES_MAX,
            request_timeout_ms=5_000,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic, row.value, row.key, partition, row.timestamp, [tuple(h) for h in row.headers]
                )
                for row in rows
            ]
            told = await gather(*futures)
            return [metadata.offset for metadata in told if metadata]
        except BrokerResponseError as error:
            raise _refused(error) from None
        finally:
            await producer.stop()

    @contextmanager
    def reader(self, topic: str) -> Iterator[AioKafkaReader]:
        with Runner() as runner:
            consumer = runner.run(self._consumer())
            try:
                yield AioKafkaReader(runner, consumer, topic)
            finally:
                runner.run(consumer.stop())

    async def _consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", check_crcs=True)
        await consumer.start()
        return consumer

    def topics(self) -> Topics:
        found = self._administer(lambda admin: admin.describe_topics())
        return {topic["topic"]: len(topic["partitions"]) for topic in found}

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = NewTopic(topic, partitions, 1, topic_configs=dict(config))
        self._check(self._administer(lambda admin: admin.create_topics([wanted])).topic_errors)

    def delete_topic(self, topic: str) -> None:
        self._check(self._administer(lambda admin: admin.delete_topics([topic])).topic_error_codes)

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: NewPartitions(total)}
        self._administer(lambda admin: admin.create_partitions(wanted))

    def config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._administer(lambda admin: admin.describe_configs([resource]))
        ((_, _, _, _, entries),) = response.resources
        return {name: value for name, value, *_ in entries}

    def _check(self, outcomes: Sequence[tuple[str, int, *tuple[Any, ...]]]) -> None:
        ((_, code, *_),) = outcomes
        if code:
            raise _refused(for_code(code)())

    def _administer(self, task: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        async def administer() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                return await task(admin)
            except BrokerResponseError as error:
                raise _refused(error) from None
            finally:
                await admin.close()

        with Runner() as runner:
            return runner.run(administer())
