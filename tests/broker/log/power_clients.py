"""
Clients of a partition: they send batches, repeat unacknowledged ones, and judge the answers.

An idempotent producer has up to five batches in flight. When one fails, or the broker restarts, it sends that one and
all after it again, in order. The log decides whether each is a duplicate, new, or out of order, and the broker must
decide likewise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Protocol

from twisted.python.failure import Failure

from kgateway.cluster.partition import Appended, Origin
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.record import Record
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.log.lossy_disk import PowerLoss
from tests.broker.log.power_log import Broken, ExpectedLog, Outlasts, Sent
from tests.records.values import batch_of

IN_FLIGHT = 5
_SHAPES = [(1, 10), (1, 300), (1, 300), (1, 2500), (2, 10), (5, 10), (5, 300)]  # number and size of records
_SECTORS = [(1, 434), (1, 434), (1, 946)]  # batches of 512 and 1024 bytes: a lost part of the disk is a batch
_OUT_OF_ORDER = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)


@dataclass(eq=False)
class Flying:
    """
    An unacknowledged batch of an idempotent producer, and whether it has to be sent.
    """

    batch: Batch
    again: bool = True


@dataclass(eq=False)
class Producer:
    id: int
    epoch: int = 0
    next_sequence: int = 0
    flying: list[Flying] = field(default_factory=list)

    def repeat(self, first: Flying | None = None) -> None:
        """
        Send this batch and all after it again, or all that are not acknowledged.
        """
        start = self.flying.index(first) if first in self.flying else 0
        for flying in self.flying[start:]:
            flying.again = True

    def begin_anew(self) -> None:
        """
        Give up unacknowledged batches and raise the epoch, as clients do when their order is lost.
        """
        self.epoch, self.next_sequence = self.epoch + 1, 0
        self.flying.clear()


class Batches:
    """
    Makes batches with unique content. They have few shapes, so that a batch often fits where another one was.
    """

    def __init__(self, chance: Random, now_ms: Callable[[], int]) -> None:
        self._chance = chance
        self._now_ms = now_ms
        self._numbers = count()
        self._shapes = _SECTORS if chance.random() < 0.3 else _SHAPES

    def make(self, producer: Producer | None = None) -> Batch:
        """
        A batch of a few records, which continues its producer's sequence if it has one.
        """
        now_ms, (number, size) = self._now_ms(), self._chance.choice(self._shapes)
        records = [Record(n, now_ms, b"%08d" % next(self._numbers), b"x" * size) for n in range(number)]
        if producer is None:
            return batch_of(records)
        sequence = producer.next_sequence
        producer.next_sequence += len(records)
        return batch_of(records, producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=sequence)


class Judge(Protocol):
    """
    Knows what the broker may do at the moment.
    """

    def tell(self, what: str) -> None:
        """
        Record an event.
        """

    def hears(self) -> bool:
        """
        Whether answers still arrive, because the process lives.
        """

    def excuse(self, failure: BaseException | None) -> None:
        """
        Ignore a failure for which there is a reason, and raise others.
        """

    def note(self, failure: Failure) -> None:
        """
        Record a fault found while a Deferred fired.
        """


class Clients:
    """
    All clients of one partition.
    """

    def __init__(self, log: ExpectedLog, batches: Batches, judge: Judge) -> None:
        self.log = log
        self.producers: list[Producer] = []
        self._batches = batches
        self._judge = judge

    def send(self, partition: IPartition) -> str:
        """
        Send a batch without a producer id.
        """
        batch = self._batches.make()
        answer = self._append(partition, batch)
        if isinstance(answer, KafkaError):
            self._judge.excuse(answer)
            return str(answer)
        sent = self.log.appended(batch, answer.base_offset, partition.leader_epoch)
        self._wait(answer, sent)
        return str(sent)

    def send_next(self, partition: IPartition, producer: Producer) -> str:
        flying = next((flying for flying in producer.flying if flying.again), None)
        if flying is None:
            if len(producer.flying) == IN_FLIGHT:
                return "it waits"
            flying = Flying(self._batches.make(producer))
            producer.flying.append(flying)
        header = flying.batch.header
        may, duplicate = self._may(header)
        answer = self._append(partition, flying.batch)
        if isinstance(answer, KafkaError):
            if answer.code not in _OUT_OF_ORDER:
                self._judge.excuse(answer)
            elif may:
                raise Broken(f"{self.log.name}: what comes next was refused: {answer}")
            else:
                producer.begin_anew()
            return str(answer)
        if not may:
            raise Broken(f"{self.log.name}: sequence {header.base_sequence} was taken, which does not come next")
        if duplicate is None:
            duplicate = self.log.appended(flying.batch, answer.base_offset, partition.leader_epoch)
        elif duplicate.base_offset != answer.base_offset:
            raise Broken(f"{self.log.name}: {duplicate} was sent again and got the offset {answer.base_offset}")
        duplicate.failed = flying.again = False
        self._wait(answer, duplicate, producer, flying)
        return f"producer {producer.id}, sequence {header.base_sequence}: {duplicate}"

    def repeat(self, partition: IPartition, sent: Sent) -> None:
        """
        Send a batch that is stored and remembered: it is not appended again.
        """
        answer = self._append(partition, sent.batch)
        if isinstance(answer, KafkaError):
            self._judge.excuse(answer)
        elif answer.base_offset != sent.base_offset:
            raise Broken(f"{self.log.name}: {sent} was sent again and got the offset {answer.base_offset}")
        else:
            self._wait(answer, sent)

    def _may(self, header: BatchHeader) -> tuple[bool, Sent | None]:
        """
        Whether the batch may be sent, and its original in the log, if there is one.
        """
        in_log = self.log.in_log(header.producer_id)
        if not in_log:
            return True, None
        last = in_log[0].header
        if last.producer_epoch != header.producer_epoch:
            return header.producer_epoch > last.producer_epoch and header.base_sequence == 0, None
        for sent in in_log:
            if sent.header.base_sequence == header.base_sequence:
                return True, sent
        return header.base_sequence == last.base_sequence + last.records_count, None

    def _append(self, partition: IPartition, batch: Batch) -> Appended | KafkaError:
        try:
            return partition.append(batch, Origin.CLIENT)
        except KafkaError as error:
            return error
        except PowerLoss:
            self.log.cut_off(batch, partition.leader_epoch)
            raise

    def _wait(
        self, answer: Appended, sent: Sent, producer: Producer | None = None, flying: Flying | None = None
    ) -> None:
        committed = Outlasts.MACHINE if self.log.fsync else Outlasts.PROCESS

        def acknowledged(_: object, outlasts: Outlasts, final: bool) -> None:
            if self._judge.hears():
                self.log.promise(sent, outlasts)
                if final and producer and flying in producer.flying:
                    producer.flying.remove(flying)

        def failed(failure: Failure) -> None:
            if self._judge.hears():
                sent.failed = True
                if producer and flying in producer.flying:
                    producer.repeat(flying)
                self._judge.excuse(failure.value)

        for waited, outlasts, final in ((answer.stored, Outlasts.PROCESS, False), (answer.committed, committed, True)):
            if waited is None:
                acknowledged(None, outlasts, final)
            else:
                waited.addCallbacks(acknowledged, failed, (outlasts, final)).addErrback(self._judge.note)
