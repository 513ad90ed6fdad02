"""
One pass over the partitions of a fetch, in their order and within its limits.

A read that has to wait for disk or network does not hold up the others: they are read at once, as if it brought all
that it may. So cold reads run side by side. The bytes that they do not use stay unused, and the next fetch brings more.
Only if they bring nothing at all are the other partitions read again.
"""

from collections.abc import Callable, Sequence
from math import inf

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.partition import Aborted, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.fetch.sessions import UNKNOWN, FetchPartition, ResponsePartition
from kgateway.interfaces import IPartition
from kgateway.security.permissions import Operation, Resource
from kgateway.topic_lookup import as_kafka_error, check_leader_epoch
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

READ_TOPIC = Operation.READ.on(Resource.TOPIC)

# In Python 3.11 a look-up in an enum costs as much as three calls.
_NO_ERROR, _READ_COMMITTED = ErrorCode.NONE, Isolation.READ_COMMITTED


class Reader:
    """
    Finds the partitions of one fetch. Each permission is asked for once, however often it reads.
    """

    __slots__ = ("_broker", "_context", "_permitted", "_replica_id", "due", "isolation")

    def __init__(self, context: Context, isolation: Isolation, replica_id: int, due: float = inf) -> None:
        self.isolation = isolation
        self.due = due  # when the client must be answered
        self._context = context
        self._broker = context.broker
        self._replica_id = replica_id
        self._permitted: set[str] = set()

    def partition(self, wanted: FetchPartition) -> IPartition:
        """
        The partition, if it is here, the client may read it, and the client knows its leader epoch.
        """
        partition = self._broker.partition(self._topic(wanted).id, wanted.index)
        if wanted.leader_epoch >= 0:
            check_leader_epoch(partition, wanted.leader_epoch)
        if self._replica_id >= 0:
            self._refuse_follower(wanted)
        return partition

    def refused(self, wanted: FetchPartition, error: BaseException | None) -> ResponsePartition:
        """
        The answer that has an error instead of records.
        """
        kafka_error = error if isinstance(error, KafkaError) else as_kafka_error(error, str(wanted))
        if kafka_error.code is ErrorCode.KAFKA_STORAGE_ERROR and self._context.version < 6:
            # Old clients do not know KAFKA_STORAGE_ERROR.
            kafka_error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, kafka_error.message)
        code = self._context.refuse(kafka_error, wanted)
        return ResponsePartition(partition_index=wanted.index, error_code=code, high_watermark=UNKNOWN, records=b"")

    def _topic(self, wanted: FetchPartition) -> Topic:
        view = self._broker.view()
        called = wanted.topic
        topic = view.topics_by_id.get(called) if isinstance(called, Uuid) else view.topics.get(called)
        name = topic.name if topic else wanted.name
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {called}")
        wanted.name = name
        if name not in self._permitted:
            self._context.demand(*READ_TOPIC, name)
            self._permitted.add(name)
        if topic:
            return topic
        if name in view.topics:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{name} has another id now than {called}")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")

    def _refuse_follower(self, wanted: FetchPartition) -> None:
        """
        Gateways do not copy logs by fetching, so a client that claims to be a replica is not one of this cluster. Kafka
        answers it with these errors, which make it ask for metadata and try again.
        """
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if wanted.leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"node {self._replica_id} has no replica of the partition")


class ReadPass:
    __slots__ = (
        "_at_least_one",
        "_committed",
        "_late",
        "_left",
        "_max_bytes",
        "_on_end",
        "_reader",
        "_wanted",
        "answers",
        "conclusive",
        "outstanding",
        "partitions",
        "size",
    )

    def __init__(self, reader: Reader, wanted: Sequence[FetchPartition], max_bytes: int) -> None:
        self.answers: list[ResponsePartition] = []
        self.partitions: list[IPartition] = []
        self.size = 0
        self.conclusive = False  # whether there is an error, or something else that the client must learn at once
        self.outstanding = 0  # reads that wait for disk or network
        self._reader = reader
        self._wanted = wanted
        self._committed = reader.isolation is _READ_COMMITTED
        self._max_bytes = self._left = max_bytes
        # The first batch is read even if it does not fit, or else it never would be.
        self._at_least_one = True
        self._late: set[int] | None = None  # the numbers of reads that had to wait
        self._on_end: Callable[[], None] | None = None
        for number, partition in enumerate(wanted):
            self._read(number, partition)

    def again(self) -> "ReadPass":
        return ReadPass(self._reader, self._wanted, self._max_bytes)

    def suffices(self, min_bytes: int) -> bool:
        return not self.outstanding and (self.size >= min_bytes or self.conclusive)

    def call_when_read(self, listener: Callable[[], None]) -> None:
        self._on_end = listener

    def _read(self, number: int, wanted: FetchPartition) -> None:
        try:
            partition = self._reader.partition(wanted)
            diverged = _diverged(partition, wanted) if wanted.last_fetched_epoch >= 0 else None
            if diverged:
                self._conclude(number, diverged)
                return
            limit = min(wanted.max_bytes, self._left)
            reader = self._reader
            read = partition.read(wanted.offset, limit, reader.isolation, self._at_least_one, reader.due)
        except Exception as error:
            self._conclude(number, self._reader.refused(wanted, error))
            return
        self.partitions.append(partition)
        if isinstance(read, Read):  # the usual case; isinstance of Deferred takes longer
            answer = self._answer(wanted, read)
            if number == len(self.answers):
                self.answers.append(answer)
            else:
                self._put(number, answer)
            if read.size:
                self._spend(read.size)
                self.size += read.size
        else:
            self._put(number, _nothing(partition, wanted))
            self._expect(read, number, wanted, limit)

    def _put(self, number: int, answer: ResponsePartition) -> None:
        if number == len(self.answers):
            self.answers.append(answer)
        else:
            self.answers[number] = answer

    def _conclude(self, number: int, answer: ResponsePartition) -> None:
        self.conclusive = True
        self._put(number, answer)

    def _spend(self, size: int) -> None:
        self._left = max(0, self._left - size)
        self._at_least_one = False

    def _expect(self, read: Deferred[Read], number: int, wanted: FetchPartition, limit: int) -> None:
        self.outstanding += 1
        if self._late is None:
            self._late = set()
        self._late.add(number)
        self._spend(limit)
        read.addCallbacks(self._arrived, self._failed, callbackArgs=(number, wanted), errbackArgs=(number, wanted))

    def _arrived(self, read: Read, number: int, wanted: FetchPartition) -> None:
        self._put(number, self._answer(wanted, read))
        self.size += read.size
        self._one_less()

    def _failed(self, failure: Failure, number: int, wanted: FetchPartition) -> None:
        self._conclude(number, self._reader.refused(wanted, failure.value))
        self._one_less()

    def _one_less(self) -> None:
        self.outstanding -= 1
        if not (self.outstanding or self.size or self.conclusive):
            self._read_empty_again()
        if not self.outstanding and self._on_end:
            on_end, self._on_end = self._on_end, None
            on_end()

    def _read_empty_again(self) -> None:
        """
        Give the other partitions the bytes that were kept for reads that brought nothing: otherwise they might never
        get any.
        """
        self._left, self._at_least_one = self._max_bytes, True
        late = self._late or ()
        again = [number for number in range(len(self._wanted)) if number not in late]
        for number in again:
            self._read(number, self._wanted[number])

    def _answer(self, wanted: FetchPartition, read: Read) -> ResponsePartition:
        return ResponsePartition(
            partition_index=wanted.index,
            error_code=_NO_ERROR,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable,
            log_start_offset=read.log_start,
            aborted_transactions=[_aborted(aborted) for aborted in read.aborted or ()] if self._committed else None,
            records=read.batches,
        )


def _aborted(transaction: Aborted) -> ResponsePartition.AbortedTransaction:
    return ResponsePartition.AbortedTransaction(
        producer_id=transaction.producer_id, first_offset=transaction.first_offset
    )


def _nothing(partition: IPartition, wanted: FetchPartition) -> ResponsePartition:
    return ResponsePartition(
        partition_index=wanted.index,
        error_code=_NO_ERROR,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable,
        log_start_offset=partition.log_start,
        records=b"",
    )


def _diverged(partition: IPartition, wanted: FetchPartition) -> ResponsePartition | None:
    """
    Where the log diverges from what the client has read of it (KIP-595), if it does.
    """
    end = partition.epoch_end(wanted.last_fetched_epoch)
    if end is None:
        reason = f"the log has no leader epoch {wanted.last_fetched_epoch}, which the client has read last"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if wanted.offset < partition.log_start:
        reason = f"offset {wanted.offset} is before the start of the log, {partition.log_start}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if end.leader_epoch >= wanted.last_fetched_epoch and end.end_offset >= wanted.offset:
        return None
    answer = _nothing(partition, wanted)
    answer.diverging_epoch = ResponsePartition.DivergingEpoch(epoch=end.leader_epoch, end_offset=end.end_offset)
    return answer
