"""
Reads logs from where one is, a piece of each at a time.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import NamedTuple, cast

from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.offsets import EARLIEST, Partition, by_leader, by_topic, found, leaders_of
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

ANSWER_BYTES = 16 << 20  # of all partitions; one batch comes whatever its size
_PART_BYTES = 4 << 20
_BY_NAME = 12  # the last version of Fetch that names topics
_NO_SESSION = -1
_CONSUMER = -1


class Fetched(NamedTuple):
    """
    What was read of a log. Without records one may have come to its end, or behind what was there.
    """

    partition: Partition
    batches: list[Batch]
    high_watermark: int


class Fetching:
    """
    `positions` are the next offsets of the partitions that are read; whoever takes records moves them on.
    """

    def __init__(self, cluster: Cluster, positions: Mapping[Partition, int]) -> None:
        self.positions = dict(positions)
        self.bytes = 0  # that came
        self._cluster = cluster
        self._leaders: dict[Partition, Node] = {}

    def poll(self, wait_ms: int) -> list[Fetched]:
        """
        What there is; where there is nothing it may take so long.
        """
        return self._cluster.kept_up(partial(self._poll, wait_ms))

    def records_of(self, fetched: Fetched) -> Iterator[list[Record]]:
        """
        The records from the position on, a list a batch; the position moves on behind each.
        """
        for batch in fetched.batches:
            position = self.positions[fetched.partition]
            if batch.header.last_offset < position:
                continue
            if not batch.header.is_control:  # what servers note about transactions is no record
                found_here = [*records(batch)]
                if batch.header.base_offset < position:
                    found_here = [record for record in found_here if record.offset >= position]
                yield found_here
            if fetched.partition not in self.positions:
                return  # whoever took them has enough of it
            self.positions[fetched.partition] = batch.header.last_offset + 1

    def _poll(self, wait_ms: int) -> list[Fetched]:
        if not self.positions.keys() <= self._leaders.keys():
            self._leaders = leaders_of(self._cluster, {one.topic for one in self.positions})
            self._refuse_missing()
        leaders, self._leaders = self._leaders, {}  # unless all goes well
        led = by_leader({one: leaders[one] for one in self.positions})
        share_ms = wait_ms // max(len(led), 1)
        told = [*chain.from_iterable(self._ask(node, own, share_ms) for node, own in led.items())]
        self._leaders = leaders
        self._turn()
        return told

    def _refuse_missing(self) -> None:
        missing = sorted(self.positions.keys() - self._leaders.keys())
        if missing:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{missing[0]} is not there")

    def _turn(self) -> None:
        """
        Who came first comes last the next time: an answer has room for some only.
        """
        if len(self.positions) > 1:
            first = next(iter(self.positions))
            self.positions[first] = self.positions.pop(first)

    def _ask(self, node: Node, own: list[Partition], wait_ms: int) -> Iterator[Fetched]:
        kind = FetchRequest.Topic
        asked = [
            kind(
                topic=name,
                partitions=[
                    kind.Partition(
                        partition=one.index, fetch_offset=self.positions[one], partition_max_bytes=_PART_BYTES
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
            max_bytes=ANSWER_BYTES,
            session_epoch=_NO_SESSION,
            topics=asked,
        )
        answer = self._cluster.connection(node).ask(request, FetchResponse, newest=_BY_NAME)
        refuse(answer.error_code)
        for topic in answer.responses:
            for told in topic.partitions:
                yield self._fetched(Partition(topic.topic, told.partition_index), told)

    def _fetched(self, one: Partition, told: FetchResponse.Response.Partition) -> Fetched:
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._go_to_the_start(one)
            return Fetched(one, [], -1)
        try:
            refuse(told.error_code)
        except KafkaError as error:
            raise KafkaError(error.code, f"{one}: {error.message or error.code.meaning}") from error
        data = cast(Buffer, told.records or b"")  # what is decoded is in one piece
        self.bytes += len(data)
        return Fetched(one, [*batches(data, cut_tail=True)], told.high_watermark)

    def _go_to_the_start(self, one: Partition) -> None:
        """
        The records have gone meanwhile, by retention say: go on with the first that there is.
        """
        start = found(self._cluster, [one], EARLIEST)[one].offset or 0
        if start <= self.positions[one]:
            beyond = f"{one} has no offset {self.positions[one]}, nor will it have it next"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, beyond)
        self.positions[one] = start
