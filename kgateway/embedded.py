"""
Access to topics and records without a socket, for programs that embed a gateway.

    gateway = Gateway(settings, reactor)
    await gateway.start()
    topics = Embedded(gateway)
    await topics.produce("orders", [(b"key", b"value")])
    records = await topics.fetch("orders", 0, 0)

Everything runs in the reactor's thread, and uses the same topics as the gateway's clients. Handlers and filters are
bypassed.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Isolation, Origin, Read
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import batches, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.server.gateway import Gateway
from kgateway.wire.errors import ErrorCode, KafkaError

KeyValue = tuple[bytes | None, bytes | None]
FETCH_BYTES = 1 << 20


class Watermarks(NamedTuple):
    """
    Offsets of a partition: that of its first record, that of the first record that is not committed, and that of the
    next record to be appended.
    """

    log_start: int
    high_watermark: int
    log_end: int


class Embedded:
    """
    Reads and writes the topics of a gateway in this process. A method that fails raises `KafkaError`.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._broker = gateway.broker

    async def create_topic(
        self, name: str, partition_count: int | None = None, config: Mapping[str, str] | None = None
    ) -> Topic:
        """
        Create a topic, by default with the number of partitions from the gateway's settings.
        """
        count = partition_count or self._gateway.settings.num_partitions
        return await self._broker.create_topic(NewTopic(name, count, TopicConfig.of(config or {})))

    async def produce(
        self,
        topic: str,
        values: Iterable[KeyValue],
        *,
        partition: int = 0,
        timestamp_ms: int | None = None,
        codec: Codec = Codec.NONE,
    ) -> int:
        """
        Append records as one batch, wait until they are committed, and return the offset of the first.
        """
        now = self._gateway.parts.now_ms() if timestamp_ms is None else timestamp_ms
        builder = BatchBuilder(codec=codec)
        for key, value in values:
            builder.append(key, value, timestamp=now)
        if not builder.count:
            raise ValueError("there are no records to produce")
        appended = self._partition(topic, partition).append(read_batch(builder.build()), Origin.CLIENT)
        appended.ignore(appended.stored)
        if appended.committed:
            await appended.committed
        return appended.base_offset

    async def fetch(
        self, topic: str, partition: int, offset: int, *, max_bytes: int = FETCH_BYTES, committed: bool = False
    ) -> list[Record]:
        """
        Return the records from an offset on: as many as fit, and at least one if there is one.
        """
        isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        read = self._partition(topic, partition).read(offset, max_bytes, isolation, at_least_one=True)
        done: Read = await read if isinstance(read, Deferred) else read
        found = (record for data in done.batches for batch in batches(data) for record in records(batch))
        return [record for record in found if record.offset >= offset]

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        """
        Return the offsets at which the log of the partition begins and ends.
        """
        log = self._partition(topic, partition)
        return Watermarks(log.log_start, log.high_watermark, log.log_end)

    def stats(self) -> dict[str, int]:
        """
        Return the number of topics, partitions and connections, and the size in bytes of the requests in progress.
        """
        topics = self._broker.view().topics.values()
        held = {"topics": len(topics), "partitions": sum(len(topic.partitions) for topic in topics)}
        return held | self._gateway.stats()

    def _partition(self, topic: str, partition: int) -> IPartition:
        found = self._broker.view().topics.get(topic)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
        return self._broker.partition(found.id, partition)
