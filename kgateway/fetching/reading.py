"""
One look at the partitions of a fetch, in their order and within its limits.

Where a read has to wait for disk or network, the others do not wait for it: they are read at once, as if it brought all
that it may. So cold reads run side by side. What they leave of the limit stays unused, and the next fetch brings more;
only where they bring nothing at all are the others read again.
"""

from collections.abc import Callable, Sequence
from math import inf

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.partition import Aborted, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.fetching.wanted import UNKNOWN, Answer, Wanted
from kgateway.interfaces import IPartition
from kgateway.partitions import check_leader_epoch, foreseen
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_NO_ERROR = ErrorCode.NONE  # in Python 3.11 a look-up in the enum costs as much as three calls


class Reader:
    """
    Finds partitions for one fetch: permissions are asked for once, however often it looks.
    """

    __slots__ = ("_broker", "_context", "_permitted", "_replica_id", "due", "isolation")

    def __init__(self, context: Context, isolation: Isolation, replica_id: int, due: float = inf) -> None:
        self.isolation = isolation
        self.due = due  # when the client is to be answered
        self._context = context
        self._broker = context.broker
        self._replica_id = replica_id
        self._permitted: set[str] = set()

    def partition(self, wanted: Wanted) -> IPartition:
        """
        The partition, if it is here, and the client may read it and knows who leads it.
        """
        partition = self._broker.partition(self._topic(wanted).id, wanted.index)
        if wanted.leader_epoch >= 0:
            check_leader_epoch(partition, wanted.leader_epoch)
        if self._replica_id >= 0:
            self._refuse_follower(wanted)
        return partition

    def refused(self, wanted: Wanted, error: BaseException | None) -> Answer:
        """
        What the client is told in place of records.
        """
        told = error if isinstance(error, KafkaError) else foreseen(error, str(wanted))
        if told.code is ErrorCode.KAFKA_STORAGE_ERROR and self._context.version < 6:
            told = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, told.message)  # old clients do not know the other
        code = self._context.refuse(told, wanted)
        return Answer(partition_index=wanted.index, error_code=code, high_watermark=UNKNOWN, records=b"")

    def _topic(self, wanted: Wanted) -> Topic:
        view = self._broker.view()
        called = wanted.topic
        topic = view.topics_by_id.get(called) if isinstance(called, Uuid) else view.topics.get(called)
        name = topic.name if topic else wanted.name
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {called}")
        wanted.name = name
        if name not in self._permitted:
            self._context.demand(Operation.READ, Resource.TOPIC, name)
            self._permitted.add(name)
        if topic:
            return topic
        if name in view.topics:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{name} has another id now than {called}")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")

    def _refuse_follower(self, wanted: Wanted) -> None:
        """
        Gateways do not copy logs from one another by fetching, so whoever names a replica is none of ours. Kafka gives
        such a one nothing but these errors, which tell it to ask for metadata and try again.
        """
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if wanted.leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"node {self._replica_id} has no replica of the partition")


class Reading:
    """
    What was found, one answer for each partition wanted.
    """

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

    def __init__(self, reader: Reader, wanted: Sequence[Wanted], max_bytes: int) -> None:
        self.answers: list[Answer] = []
        self.partitions: list[IPartition] = []
        self.size = 0
        self.conclusive = False  # there is an error, or something else that the client is told at once
        self.outstanding = 0  # reads that wait for disk or network
        self._reader = reader
        self._wanted = wanted
        self._committed = reader.isolation is Isolation.READ_COMMITTED
        self._max_bytes = self._left = max_bytes
        # Of the first batches there are, one is read also where it does not fit, or else it never would be.
        self._at_least_one = True
        self._late: set[int] = set()  # the places of reads that had to wait
        self._on_end: Callable[[], None] | None = None
        for place, one in enumerate(wanted):
            self._read(place, one)

    def again(self) -> "Reading":
        """
        Another look for the same.
        """
        return Reading(self._reader, self._wanted, self._max_bytes)

    def suffices(self, min_bytes: int) -> bool:
        """
        Whether it can be answered, or more has to be waited for.
        """
        return not self.outstanding and (self.size >= min_bytes or self.conclusive)

    def call_at_end(self, listener: Callable[[], None]) -> None:
        """
        Call once no read is outstanding.
        """
        self._on_end = listener

    def _read(self, place: int, wanted: Wanted) -> None:
        try:
            partition = self._reader.partition(wanted)
            diverged = _diverged(partition, wanted) if wanted.last_fetched_epoch >= 0 else None
            if diverged:
                self._conclude(place, diverged)
                return
            limit = min(wanted.max_bytes, self._left)
            reader = self._reader
            read = partition.read(wanted.offset, limit, reader.isolation, self._at_least_one, reader.due)
        except Exception as error:
            self._conclude(place, self._reader.refused(wanted, error))
            return
        self.partitions.append(partition)
        if isinstance(read, Read):  # the usual; to ask whether it is a Deferred takes longer
            self._put(place, self._answer(wanted, read))
            if read.size:
                self._spend(read.size)
                self.size += read.size
        else:
            self._put(place, _nothing(partition, wanted))
            self._expect(read, place, wanted, limit)

    def _put(self, place: int, answer: Answer) -> None:
        if place == len(self.answers):
            self.answers.append(answer)
        else:
            self.answers[place] = answer

    def _conclude(self, place: int, answer: Answer) -> None:
        self.conclusive = True
        self._put(place, answer)

    def _spend(self, size: int) -> None:
        self._left = max(0, self._left - size)
        self._at_least_one = False

    def _expect(self, read: Deferred[Read], place: int, wanted: Wanted, limit: int) -> None:
        self.outstanding += 1
        self._late.add(place)
        self._spend(limit)
        read.addCallbacks(self._arrived, self._failed, callbackArgs=(place, wanted), errbackArgs=(place, wanted))

    def _arrived(self, read: Read, place: int, wanted: Wanted) -> None:
        self._put(place, self._answer(wanted, read))
        self.size += read.size
        self._one_less()

    def _failed(self, failure: Failure, place: int, wanted: Wanted) -> None:
        self._conclude(place, self._reader.refused(wanted, failure.value))
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
        Give the others what was kept for reads that brought nothing: they might never get it elsewise.
        """
        self._left, self._at_least_one = self._max_bytes, True
        again = [place for place in range(len(self._wanted)) if place not in self._late]
        for place in again:
            self._read(place, self._wanted[place])

    def _answer(self, wanted: Wanted, read: Read) -> Answer:
        return Answer(
            partition_index=wanted.index,
            error_code=_NO_ERROR,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable,
            log_start_offset=read.log_start,
            aborted_transactions=[_aborted(one) for one in read.aborted or ()] if self._committed else None,
            records=read.batches,
        )


def _aborted(transaction: Aborted) -> Answer.AbortedTransaction:
    return Answer.AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)


def _nothing(partition: IPartition, wanted: Wanted) -> Answer:
    """
    Where the log is, without records.
    """
    return Answer(
        partition_index=wanted.index,
        error_code=_NO_ERROR,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable,
        log_start_offset=partition.log_start,
        records=b"",
    )


def _diverged(partition: IPartition, wanted: Wanted) -> Answer | None:
    """
    Where the log parted from what the client has read of it (KIP-595), if it did.
    """
    end = partition.epoch_end(wanted.last_fetched_epoch)
    if end is None:
        reason = f"the log has no leader epoch {wanted.last_fetched_epoch}, which the client read last"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if wanted.offset < partition.log_start:
        reason = f"offset {wanted.offset} is before the start of the log, {partition.log_start}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if end.leader_epoch >= wanted.last_fetched_epoch and end.end_offset >= wanted.offset:
        return None
    answer = _nothing(partition, wanted)
    answer.diverging_epoch = Answer.DivergingEpoch(epoch=end.leader_epoch, end_offset=end.end_offset)
    return answer
