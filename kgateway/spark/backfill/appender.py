"""
Appends numbered batches of rows to one partition.

A row's number is its sequence number, of one producer id that the backfill keeps for all its life. So the last batch of
that producer in the log says which row is next, and a server that receives a batch out of order, from an earlier
attempt that was thought dead, refuses it.
"""

from dataclasses import dataclass
from functools import partial

from kgateway.client.cluster import Cluster, Node, leaders_of
from kgateway.client.fetcher import Fetcher
from kgateway.client.offsets import Extent, extents
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.compression import Codec
from kgateway.spark.backfill.batch_encoder import Columns, ProducerEpoch, batch_of
from kgateway.spark.errors import TopicGone, Unreadable, Unwritten
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

SEQUENCES = 1 << 31  # after the largest comes 0
_FIRST_LOOK = 1_000  # offsets before the end; others may have written there
_FURTHER = 8
_WAIT_MS = 500
_BATCH_BYTES = 512 << 10  # Kafka takes batches of a megabyte by default
_ALL = -1  # acks
_WORK_MS = 30_000
_BY_NAME = 12  # the last version of Produce that names topics
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
_OUT_OF_ORDER = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
_Result = ProduceResponse.Response.PartitionResponse


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How many rows the log has, and the offset behind the last one.
    """

    rows: int
    end: int


def progress_of(cluster: Cluster, partition: TopicPartition, start: int, producer_id: int) -> Progress:
    """
    How much the log has of a backfill that began at this offset, searched from the end backwards.
    """
    extent = cluster.retry(lambda: extents(cluster, [partition]), reconnect=True).get(partition)
    if extent is None:
        raise TopicGone(f"{partition} does not exist any more")
    first, low, span = max(start, extent.start), extent.end, _FIRST_LOOK
    while low > first:
        high, low = low, max(low - span, first)
        found = _last_between(cluster, partition, producer_id, Extent(low, high), start)
        if found:
            return found
        span *= _FURTHER
    if extent.start > start:
        raise Unreadable(
            f"{partition} begins with offset {extent.start} now, but the backfill began at {start}: rows may have "
            "been deleted, for example by retention. Start again with another --state"
        )
    return Progress(0, start)


def _last_between(
    cluster: Cluster, partition: TopicPartition, producer_id: int, where: Extent, start: int
) -> Progress | None:
    fetching = Fetcher(cluster, {partition: where.start})
    last: Progress | None = None
    while fetching.positions[partition] < where.end:
        [fetched] = fetching.poll(_WAIT_MS)
        if fetched.damage:
            raise fetched.damage
        if not fetched.batches:
            break
        for batch in fetched.batches:
            header = batch.header
            if header.producer_id == producer_id and header.last_offset >= start:
                sequence = (header.base_sequence + header.last_offset_delta) % SEQUENCES
                last = Progress(_row_of(sequence, header.last_offset - start) + 1, header.last_offset + 1)
        fetching.positions[partition] = max(fetched.batches[-1].header.last_offset + 1, where.start)
    return last


def _row_of(sequence: int, furthest: int) -> int:
    """
    The row with this sequence number. Numbers repeat after 2**31 rows: it is the last one that fits.
    """
    return sequence + max(furthest - sequence, 0) // SEQUENCES * SEQUENCES


class Appender:
    """
    Gets all rows from the first on, and skips those that the log has.
    """

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        start: int,
        numbering: ProducerEpoch,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.appended = 0  # by this object
        self._cluster = cluster
        self._partition = partition
        self._start = start
        self._numbering = numbering
        self._codec = codec
        self._most_bytes = _BATCH_BYTES
        self._leader: Node | None = None
        self._given = 0
        self._standing = self._look()
        self._next = self._standing.rows

    def append(self, rows: Columns, most_rows: int) -> None:
        """
        Append one batch of the next rows.
        """
        piece = rows.cut(self._next - self._given, len(rows))
        self._send(piece.cut(0, min(piece.fitting(self._most_bytes), most_rows)))

    def has(self, rows: Columns) -> bool:
        """
        Whether the log already has all of the next rows.
        """
        return self._next >= self._given + len(rows)

    def skip(self, rows: int) -> None:
        """
        Count rows that the log has.
        """
        self._given += rows

    def _look(self) -> Progress:
        return progress_of(self._cluster, self._partition, self._start, self._numbering.producer_id)

    def _send(self, rows: Columns) -> None:
        batch = memoryview(batch_of(rows, self._numbering, self._next % SEQUENCES, self._codec))
        result = self._cluster.retry(partial(self._ask, batch), reconnect=True)
        if result.error_code == ErrorCode.NONE:
            self._account(len(rows))
        elif result.error_code in _OUT_OF_ORDER:
            self._look_again(result)
        elif result.error_code in _TOO_LARGE and len(rows) > 1:
            self._most_bytes //= 2
        else:
            raise Unwritten(f"{self._partition} does not accept row {self._next + 1}: {_words(result)}")

    def _account(self, count: int) -> None:
        is_first = self._next == 0
        self._next += count
        self.appended += count
        # A server that drops sequence numbers could not say later how far the backfill has come.
        if is_first and self._look().rows < count:
            raise Unwritten(
                f"the server stores records of {self._partition} without the sequence numbers of their producer: rows "
                "that are in the log could not be told from rows that are not"
            )

    def _look_again(self, result: _Result) -> None:
        """
        Another attempt of the same work, which is not dead yet, has appended rows: continue behind them.
        """
        found = self._look()
        if found.rows <= self._next:
            raise Unwritten(
                f"{self._partition} has {found.rows:,} rows, but does not accept row {self._next + 1:,}: "
                f"{_words(result)}"
            )
        self._next = found.rows

    def _ask(self, batch: memoryview) -> _Result:
        leader, self._leader = self._leader or self._find_leader(), None
        kind = ProduceRequest.TopicData
        data = kind.PartitionData(index=self._partition.index, records=batch)
        topic = kind(name=self._partition.topic, partition_data=[data])
        request = ProduceRequest(acks=_ALL, timeout_ms=_WORK_MS, topic_data=[topic])
        answer = self._cluster.connection(leader).ask(request, ProduceResponse, newest=_BY_NAME)
        [result] = answer.responses[0].partition_responses
        if result.error_code and ErrorCode(result.error_code).retriable and result.error_code not in _OUT_OF_ORDER:
            raise KafkaError(ErrorCode(result.error_code), result.error_message)
        self._leader = leader
        return result

    def _find_leader(self) -> Node:
        leaders = leaders_of(self._cluster, [self._partition.topic])
        if self._partition not in leaders:
            raise TopicGone(f"{self._partition} does not exist any more")
        return leaders[self._partition].node


def _words(result: _Result) -> str:
    code = ErrorCode(result.error_code)
    return f"{result.error_message or code.meaning} ({code.name})"
