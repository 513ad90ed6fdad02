"""
Consumers beside crashes: one that follows all partitions from the beginning, one that watches their ends, and one
that reads everything back.
"""

from array import array
from collections.abc import Collection, Iterator
from threading import Event
from time import monotonic
from zlib import crc32

from confluent_kafka import Consumer, TopicPartition

from kgateway.messages.list_offsets import ListOffsetsRequest
from kgateway.records.batch import batches
from kgateway.wire.errors import ErrorCode
from tests.faults.accounting import Head, Read
from tests.faults.background import Background, ServerPoller
from tests.faults.client import FETCH_VERSION, Client, fetch_request
from tests.faults.ledger import PartitionName
from tests.faults.producers import PATIENCE_S, QUICK_TO_RETURN

_PAUSE_S = 0.02
_LONG_MS = 10_000
_PIECE = 8 << 20
_LATEST = -1
_LIST_OFFSETS_VERSION = 5
_NOT_YET = ErrorCode.NOT_LEADER_OR_FOLLOWER  # while a partition is recovered


def consumer(bootstrap: str) -> Consumer:
    """
    A consumer that fails on a missing offset instead of resetting.
    """
    strict = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error", "check.crcs": True}
    return Consumer({"bootstrap.servers": bootstrap, **QUICK_TO_RETURN, **strict, "fetch.wait.max.ms": 50})


class Follower(Background):
    """
    Reads all partitions through crashes, and remembers a checksum of each record.
    """

    def __init__(self, bootstrap: str, places: Collection[PartitionName]) -> None:
        self.faults: list[str] = []
        self.seen = {place: array("L") for place in places}
        self._bootstrap = bootstrap
        super().__init__()

    def reaches(self, place: PartitionName, end: int) -> bool:
        """
        Whether the follower reaches this offset in time.
        """
        deadline = monotonic() + PATIENCE_S
        while len(self.seen[place]) < end and monotonic() < deadline and not self.faults:
            self._stopping.wait(_PAUSE_S)
        return len(self.seen[place]) >= end

    def _run(self) -> None:
        try:
            reading = consumer(self._bootstrap)
            reading.assign([TopicPartition(topic, partition, 0) for topic, partition in self.seen])
            while not self._stopping.is_set():
                for message in reading.consume(1_000, timeout=_PAUSE_S):
                    place = str(message.topic()), message.partition() or 0
                    error = message.error()
                    if error:
                        self.faults.append(f"{place}: the consumer that follows is told {error}")
                    else:
                        self._take(place, message.offset() or 0, message.value() or b"")
            reading.close()
        except BaseException as failure:
            self.faults.append(f"the consumer that follows failed: {failure!r}")

    def _take(self, place: PartitionName, offset: int, value: bytes) -> None:
        if offset != len(self.seen[place]):
            self.faults.append(f"{place}: the consumer that follows gets {offset} behind {len(self.seen[place]) - 1}")
            return
        self.seen[place].append(crc32(value))


class EndWatcher(ServerPoller):
    """
    Watches high watermarks: one that decreases takes back records that somebody may have read.
    """

    def __init__(self, port: int, places: Collection[PartitionName]) -> None:
        self.faults: list[str] = []
        self.highest = dict.fromkeys(places, 0)
        self.asked = 0
        super().__init__(port, _PAUSE_S)

    def _fail(self, failure: BaseException) -> None:
        self.faults.append(f"asking for high watermarks failed: {failure!r}")

    def _ask(self, client: Client) -> None:
        wanted: dict[str, ListOffsetsRequest.Topic] = {}
        for topic, partition in self.highest:
            row = wanted.setdefault(topic, ListOffsetsRequest.Topic(name=topic, partitions=[]))
            row.partitions.append(ListOffsetsRequest.Topic.Partition(partition_index=partition, timestamp=_LATEST))
        answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=list(wanted.values())), _LIST_OFFSETS_VERSION)
        self.asked += 1
        for told_topic in answer.topics:
            for told in told_topic.partitions:
                self._note((told_topic.name, told.partition_index), told.error_code, told.offset)

    def _note(self, place: PartitionName, error_code: int, offset: int) -> None:
        if error_code not in {ErrorCode.NONE, _NOT_YET}:
            self.faults.append(f"{place}: its end is answered with {ErrorCode(error_code).name}")
        elif error_code == ErrorCode.NONE:
            if offset < self.highest[place]:
                self.faults.append(f"{place}: the high watermark went back from {self.highest[place]} to {offset}")
            self.highest[place] = max(offset, self.highest[place])


def heads(port: int, place: PartitionName) -> list[Head]:
    """
    The batch headers of a partition.
    """
    topic, partition = place
    found: list[Head] = []
    wait_ms = 0
    with Client(port) as client:
        while True:
            offset = found[-1].last_offset + 1 if found else 0
            request = fetch_request(topic, offset=offset, partition=partition, max_bytes=_PIECE, max_wait_ms=wait_ms)
            [told] = client.ask(request, FETCH_VERSION).responses[0].partitions
            if told.error_code == _NOT_YET:
                Event().wait(_PAUSE_S)
                continue
            assert told.error_code == ErrorCode.NONE, f"{place}: offset {offset} is answered with {told.error_code}"
            if offset >= told.high_watermark:
                return found
            if not told.records and not wait_ms:
                wait_ms = _LONG_MS  # a cluster's files may be slower than a client's patience
                continue
            wait_ms = 0
            assert told.records, f"{place}: nothing at offset {offset}, and the high watermark is {told.high_watermark}"
            headers = [batch.header for batch in batches(told.records, cut_tail=True)]
            found += [Head(header.base_offset, header.last_offset, header.producer_id) for header in headers]


def records(bootstrap: str, place: PartitionName, end: int) -> Iterator[Read]:
    """
    The records of a partition up to its end, read by a real consumer.
    """
    topic, partition = place
    reading = consumer(bootstrap)
    following = 0
    try:
        reading.assign([TopicPartition(topic, partition, 0)])
        deadline = monotonic() + PATIENCE_S
        while following < end and monotonic() < deadline:
            for message in reading.consume(10_000, timeout=_PAUSE_S):
                error, offset = message.error(), message.offset()
                assert error is None, f"{place}: behind offset {following - 1} a consumer is told {error}"
                assert offset is not None
                following = offset + 1
                yield Read(offset, message.value() or b"")
    finally:
        reading.close()
