"""
Fetches the logs of partitions from their leaders.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import NamedTuple, cast

from kgateway.client.cluster import Cluster, Leader, Node, by_node, by_topic, leaders_of_all, refuse
from kgateway.client.offsets import EARLIEST, offsets_at
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

ANSWER_BYTES = 16 << 20  # of all partitions; one batch comes whatever its size
_PART_BYTES = 4 << 20
_BY_NAME = 12  # the last version of Fetch that names topics
_NO_SESSION = -1
_CONSUMER = -1


class Fetched(NamedTuple):
    """
    One partition's part of a Fetch answer. It has no batches at the end of the log, if the offset is out of range, or
    if the records are damaged.
    """

    partition: TopicPartition
    batches: list[Batch]
    readable: int  # the high watermark, or the last stable offset
    aborted: list[tuple[int, int]]  # the producer and the first offset of each aborted transaction
    is_out_of_range: bool = False
    damage: KafkaError | None = None


class Fetcher:
    """
    Fetches from several partitions. `positions` are the next offsets; the caller advances them past the records it
    takes.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        part_bytes: int = _PART_BYTES,
        committed_only: bool = False,
    ) -> None:
        self.positions = dict(positions)
        self.bytes = 0  # that were received
        self._cluster = cluster
        self._part_bytes = part_bytes
        self._committed_only = committed_only
        self._leaders: dict[TopicPartition, Leader] = {}

    def poll(self, wait_ms: int) -> list[Fetched]:
        """
        Fetch what is available, or wait at most this long for it. If the start of a log has been removed, as by
        retention, reading continues with its first record. The caller handles damaged records.
        """
        return self._cluster.retry(partial(self._poll, wait_ms), reconnect=True)

    def fetch(self, wait_ms: int) -> list[Fetched]:
        """
        Fetch once, without a retry; the caller handles an offset that is out of range.
        """
        fetched = self._fetch(wait_ms)
        for one in fetched:
            if one.damage:
                raise one.damage
        return fetched

    def _fetch(self, wait_ms: int) -> list[Fetched]:
        if not self.positions.keys() <= self._leaders.keys():
            self._leaders = leaders_of_all(self._cluster, self.positions)
        leaders, self._leaders = self._leaders, {}  # unless all goes well
        nodes = by_node({one: leaders[one].node for one in self.positions})
        share_ms = wait_ms // max(len(nodes), 1)
        fetched = [*chain.from_iterable(self._ask(node, own, leaders, share_ms) for node, own in nodes.items())]
        self._leaders = leaders
        self._rotate()
        return fetched

    def records_of(self, fetched: Fetched) -> Iterator[list[Record]]:
        """
        The records from the position on, one list per batch. The position advances past each batch.
        """
        for batch in fetched.batches:
            position = self.positions[fetched.partition]
            if batch.header.last_offset < position:
                continue
            if not batch.header.is_control:  # control batches have no records for callers
                found = [*records(batch)]
                if batch.header.base_offset < position:
                    found = [record for record in found if record.offset >= position]
                yield found
            if fetched.partition not in self.positions:
                return  # the caller has dropped the partition
            self.positions[fetched.partition] = batch.header.last_offset + 1

    def _poll(self, wait_ms: int) -> list[Fetched]:
        fetched = self._fetch(wait_ms)
        for one in fetched:
            if one.is_out_of_range:
                self._seek_to_start(one.partition)
        return fetched

    def _rotate(self) -> None:
        """
        Request another partition first the next time, because an answer may only have room for the first ones.
        """
        if len(self.positions) > 1:
            first = next(iter(self.positions))
            self.positions[first] = self.positions.pop(first)

    def _ask(
        self, node: Node, own: list[TopicPartition], leaders: Mapping[TopicPartition, Leader], wait_ms: int
    ) -> Iterator[Fetched]:
        kind = FetchRequest.Topic
        asked = [
            kind(
                topic=name,
                topic_id=leaders[group[0]].topic_id,
                partitions=[
                    kind.Partition(
                        partition=one.index,
                        current_leader_epoch=leaders[one].epoch,
                        fetch_offset=self.positions[one],
                        partition_max_bytes=self._part_bytes,
                    )
                    for one in group
                ],
            )
            for name, group in by_topic(own).items()
        ]
        request = FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max(ANSWER_BYTES, self._part_bytes),
            isolation_level=int(self._committed_only),
            session_epoch=_NO_SESSION,
            topics=asked,
        )
        has_ids = all(any(topic.topic_id) for topic in asked)  # old servers send zeroes
        answer = self._cluster.connection(node).ask(request, FetchResponse, newest=None if has_ids else _BY_NAME)
        refuse(answer.error_code)
        names = {topic.topic_id: topic.topic for topic in asked}
        for topic in answer.responses:
            for part in topic.partitions:
                yield self._fetched(TopicPartition(topic.topic or names[topic.topic_id], part.partition_index), part)

    def _fetched(self, one: TopicPartition, part: FetchResponse.Response.Partition) -> Fetched:
        readable = part.last_stable_offset if self._committed_only else part.high_watermark
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Fetched(one, [], readable, [], is_out_of_range=True)
        if part.error_code == ErrorCode.CORRUPT_MESSAGE:
            return Fetched(one, [], readable, [], damage=self._damage(one))
        try:
            refuse(part.error_code)
        except KafkaError as error:
            raise KafkaError(error.code, f"{one}: {error.message or error.code.meaning}") from error
        data = cast(Buffer, part.records or b"")  # decoded buffers are contiguous
        self.bytes += len(data)
        aborted = [(each.producer_id, each.first_offset) for each in part.aborted_transactions or ()]
        return Fetched(one, [*batches(data, cut_tail=True)], readable, aborted)

    def _damage(self, one: TopicPartition) -> KafkaError:
        at = self.positions[one]
        what = f"the records at offset {at} are damaged on the server; reading can continue at a later offset"
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{one}: {what}")

    def _seek_to_start(self, one: TopicPartition) -> None:
        start = offsets_at(self._cluster, [one], EARLIEST)[one].offset or 0
        if start <= self.positions[one]:
            beyond = f"{one} has no offset {self.positions[one]}, and it is not the next one"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, beyond)
        self.positions[one] = start
