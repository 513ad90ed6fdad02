"""
Rows into one partition, one batch after the other, each with its number.
"""

from functools import partial

from kgateway.client.cluster import Cluster, Node
from kgateway.client.offsets import Partition, leaders_of
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.compression import Codec
from kgateway.spark.backfill.encoding import Columns, Numbering, batch_of
from kgateway.spark.backfill.standing import SEQUENCES, Standing, standing
from kgateway.spark.failures import TopicGone, Unwritten
from kgateway.wire.errors import ErrorCode, KafkaError

_BATCH_BYTES = 512 << 10  # Kafka takes batches of a megabyte unless it is told otherwise
_ALL = -1  # acks
_WORK_MS = 30_000
_BY_NAME = 12  # the last version of Produce that names topics
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
_OUT_OF_ORDER = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}

_Told = ProduceResponse.Response.PartitionResponse


class Appender:
    """
    Is given all rows from the first on, and passes over those that are in the log.
    """

    def __init__(
        self, cluster: Cluster, partition: Partition, start: int, numbering: Numbering, codec: Codec = Codec.NONE
    ) -> None:
        self.appended = 0  # by this one
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
        Append a batch of the next rows.
        """
        piece = rows.cut(self._next - self._given, len(rows))
        self._send(piece.cut(0, min(piece.fitting(self._most_bytes), most_rows)))

    def has(self, rows: Columns) -> bool:
        """
        Whether all of the next rows are in the log.
        """
        return self._next >= self._given + len(rows)

    def skip(self, rows: int) -> None:
        """
        So many rows are in the log: others follow.
        """
        self._given += rows

    def _look(self) -> Standing:
        return standing(self._cluster, self._partition, self._start, self._numbering.producer_id)

    def _send(self, rows: Columns) -> None:
        batch = memoryview(batch_of(rows, self._numbering, self._next % SEQUENCES, self._codec))
        told = self._cluster.kept_up(partial(self._ask, batch))
        if told.error_code == ErrorCode.NONE:
            self._account(len(rows))
        elif told.error_code in _OUT_OF_ORDER:
            self._look_again(told)
        elif told.error_code in _TOO_LARGE and len(rows) > 1:
            self._most_bytes //= 2
        else:
            raise Unwritten(f"{self._partition} takes no row {self._next + 1}: {_words(told)}")

    def _account(self, count: int) -> None:
        is_first = self._next == 0
        self._next += count
        self.appended += count
        # Who keeps no numbers could not be asked later how far one has come.
        if is_first and self._look().rows < count:
            raise Unwritten(
                f"the server keeps records of {self._partition} without the numbers of their producer: what is in the "
                "log could not be told from what is not"
            )

    def _look_again(self, told: _Told) -> None:
        """
        Somebody else has appended rows: a try of the same work that is not dead yet. Go on behind them.
        """
        found = self._look()
        if found.rows <= self._next:
            raise Unwritten(
                f"{self._partition} has {found.rows:,} rows, and takes no row {self._next + 1:,}: {_words(told)}"
            )
        self._next = found.rows

    def _ask(self, batch: memoryview) -> _Told:
        leader, self._leader = self._leader or self._find_leader(), None
        kind = ProduceRequest.TopicData
        data = kind.PartitionData(index=self._partition.index, records=batch)
        topic = kind(name=self._partition.topic, partition_data=[data])
        request = ProduceRequest(acks=_ALL, timeout_ms=_WORK_MS, topic_data=[topic])
        answer = self._cluster.connection(leader).ask(request, ProduceResponse, newest=_BY_NAME)
        [told] = answer.responses[0].partition_responses
        if told.error_code and ErrorCode(told.error_code).retriable and told.error_code not in _OUT_OF_ORDER:
            raise KafkaError(ErrorCode(told.error_code), told.error_message)
        self._leader = leader
        return told

    def _find_leader(self) -> Node:
        leaders = leaders_of(self._cluster, [self._partition.topic])
        if self._partition not in leaders:
            raise TopicGone(f"{self._partition} is there no more")
        return leaders[self._partition]


def _words(told: _Told) -> str:
    code = ErrorCode(told.error_code)
    return f"{told.error_message or code.meaning} ({code.name})"
