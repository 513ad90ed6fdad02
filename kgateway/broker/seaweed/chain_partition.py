"""
A partition whose log is in chains of objects in a filer: for the state of coordinators, which is small and must last.

Each leader epoch has a chain of its own. Whoever leads next ends those before it with a fence, reads them, and begins
one. Batches that come while an object is on its way go together into the next one. What is behind the last snapshot is
in memory too: only one process appends to a chain, and it is what reads it.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.awaited import Awaited
from kgateway.broker.owned import OwnedPartition
from kgateway.broker.producers import EXPIRY_MS, ProducerTable
from kgateway.broker.seaweed.chain import Chain, ChainObject
from kgateway.broker.seaweed.chain_object import ChainDamaged
from kgateway.broker.tail import Tail
from kgateway.broker.times import find_max_time, find_time
from kgateway.cluster.partition import EARLIEST_OFFSET, Aborted, EpochEnd, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, batches, placed
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_ON_THEIR_WAY = 2  # objects; what comes meanwhile goes together into the next


class _Place(NamedTuple):
    end: int  # the offset behind the object
    chain: Chain
    number: int


@implementer(IPartition)
class ChainPartition(OwnedPartition):
    """
    What is appended is safe, and can be read, once its object is there.
    """

    def __init__(
        self,
        topic: Topic,
        index: int,
        now_ms: Callable[[], int],
        chain: Chain,
        clock: IReactorTime,
        ready: Deferred[None] | None = None,
    ) -> None:
        super().__init__(topic, index, now_ms, ProducerTable(EXPIRY_MS))
        self.high_watermark = EARLIEST_OFFSET
        self.now_ms = now_ms
        self._chain = chain
        self._clock = clock
        self._tail: Tail[Buffer] = Tail(EARLIEST_OFFSET)
        self._unsafe = Awaited()
        self._objects: list[_Place] = []
        self._next: list[bytes] = []  # batches for the next object
        self._underway = 0
        if ready is not None:  # nothing goes into the chain before
            self._underway = _ON_THEIR_WAY
            ready.addCallbacks(self._become_ready, self._not_sent)

    @property
    def last_stable(self) -> int:
        return self.high_watermark

    @property
    def size(self) -> int:
        """
        Of what is behind the last snapshot, in bytes.
        """
        return self._tail.size

    def take(self, chain: Chain, found: ChainObject) -> None:
        """
        One more object, as they are read when the partition is opened.
        """
        for batch in batches(found.payload):
            header = batch.header
            if header.last_offset < self._tail.end:  # it is in a snapshot
                continue
            if self._tail.end != header.base_offset:
                raise ChainDamaged(
                    f"{self.topic.name}-{self.index} has nothing between {self._tail.end} and {header.base_offset}"
                )
            self._tail.add(bytes(batch.data), header.base_offset, header.last_offset + 1)
        self.begin_at(self._tail.end)
        self._objects.append(_Place(self.log_end, chain, found.number))

    def begin_at(self, offset: int) -> None:
        """
        There is nothing behind this offset yet, be it only known from a snapshot.
        """
        if offset > self._tail.end:
            self._tail = Tail(offset)
        self.log_start, self.log_end = self._tail.start, self._tail.end
        self.high_watermark = self.log_end

    async def forget(self, offset: int) -> None:
        """
        Let go of what is before the offset, which a snapshot has; as far as objects end there.
        """
        gone = [place for place in self._objects if place.end <= offset]
        if not gone:
            return
        self._objects = self._objects[len(gone) :]
        self._tail.cut(gone[-1].end)
        self.log_start = self._tail.start
        for chain, number in {place.chain: place.number for place in gone}.items():
            await chain.forget(number + 1)

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._unsafe.fail(why)
        self._next.clear()

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf) -> Read:
        self._check_owned()
        self._check_offset(offset)
        end = self.high_watermark
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        if offset >= end:
            return Read([], 0, end, end, self.log_start, aborted)
        found, size = self._tail.read(offset, max_bytes, at_least_one, end)
        return Read(found, size, end, end, self.log_start, aborted)

    def find_time(self, timestamp: int) -> Found | None:
        self._check_owned()
        return find_time(self._readable(), timestamp)

    def find_max_time(self) -> Found | None:
        self._check_owned()
        return find_max_time(self._readable())

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return EpochEnd(leader_epoch, self.log_end) if leader_epoch == self.leader_epoch else None

    def expire(self) -> Deferred[None]:
        return succeed(None)  # the state of a coordinator is kept until a snapshot has it

    async def _begin_at(self, offset: int) -> None:
        reason = f"{self.topic.name}-{self.index} has the state of a coordinator, which goes when a snapshot has it"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)

    def _readable(self) -> list[Batch]:
        found = [batch for data in self._tail.batches for batch in batches(data)]
        return [batch for batch in found if batch.header.base_offset < self.high_watermark]

    def _keep(self, batch: Batch) -> None:
        data = b"".join(placed(batch, self.log_end, self.leader_epoch))
        base_offset = self.log_end
        self.log_end += batch.header.last_offset_delta + 1
        self._tail.add(data, base_offset, self.log_end)
        self._next.append(data)
        if len(self._next) == 1 and self._underway < _ON_THEIR_WAY:
            self._clock.callLater(0, self._send)

    def _moved(self) -> None:
        """
        Nobody can read the batch yet.
        """

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        return self._when_safe(offset)

    def _when_safe(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self.high_watermark else self._unsafe.wait(offset)

    def _become_ready(self, _: None) -> None:
        self._underway = 0
        self._send()

    def _send(self) -> None:
        """
        Put what waits into an object of the chain.
        """
        if not self._next or self.lost or self._underway >= _ON_THEIR_WAY:
            return
        payload, self._next = b"".join(self._next), []
        self._underway += 1
        self._chain.append(payload).addCallback(self._sent, self.log_end).addErrback(self._not_sent)

    def _sent(self, number: int, end: int) -> None:
        self._underway -= 1
        if self.lost:
            return
        self._objects.append(_Place(end, self._chain, number))
        self.high_watermark = end
        self._unsafe.reached(end)
        self._waiters.wake()
        self._send()

    def _not_sent(self, failure: Failure) -> None:
        """
        Nobody can tell from here what the chain has: it must be read again, under a new epoch.
        """
        if self.lost or failure.check(CancelledError):
            return
        reason = f"{self.topic.name}-{self.index} cannot be written: {failure.getErrorMessage()}"
        self.lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))
