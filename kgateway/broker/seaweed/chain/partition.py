"""
A partition whose log is in chains of objects in a filer. Coordinators keep their state there: it is small, and must be
durable.

Each leader epoch has a chain of its own. The next leader ends earlier chains with a fence, reads them, and begins its
own. Batches that arrive while an object is on its way go together into the next one. Batches after the last snapshot
are in memory, too: only one process appends to a chain, and the same process reads it.

The last snapshot of a coordinator's state is a file beside its chains: `snapshot-OFFSET`.
"""

import re
from collections.abc import Awaitable, Callable
from math import inf
from typing import NamedTuple

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.partition.base import PartitionBase
from kgateway.broker.partition.batch_cache import BatchCache
from kgateway.broker.partition.listeners import OffsetWaiters
from kgateway.broker.partition.producer_state import EXPIRY_MS, ProducerTable
from kgateway.broker.partition.timestamp_search import find_max_time, find_time
from kgateway.broker.seaweed.chain.chain import Chain, ChainObject
from kgateway.broker.seaweed.chain.chain_folder import ChainDamaged
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.state_log import Snapshot, is_whole, read_state, write_state
from kgateway.cluster.partition import EARLIEST_OFFSET, Aborted, EpochEnd, Isolation, Read, TimestampAndOffset
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, batches, placed
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_ON_THEIR_WAY = 2  # objects; batches that arrive meanwhile share the next one


class _StoredObject(NamedTuple):
    end: int  # the offset after the object
    chain: Chain
    number: int


@implementer(IPartition)
class ChainPartition(PartitionBase):
    """
    A partition of the internal topics. A batch is committed, and can be read, once its object is in the chain.
    """

    high_watermark: int = EARLIEST_OFFSET

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
        self.now_ms = now_ms
        self._chain = chain
        self._clock = clock
        self._tail: BatchCache[Buffer] = BatchCache(EARLIEST_OFFSET)
        self._uncommitted = OffsetWaiters()
        self._objects: list[_StoredObject] = []
        self._next: list[bytes] = []  # batches for the next object
        self._underway = 0
        if ready is not None:  # nothing is appended to the chain before it fires
            self._underway = _ON_THEIR_WAY
            ready.addCallbacks(self._become_ready, self._not_sent)

    @property
    def last_stable(self) -> int:
        return self.high_watermark

    @property
    def size(self) -> int:
        """
        Bytes after the last snapshot.
        """
        return self._tail.size

    def add_object(self, chain: Chain, found: ChainObject) -> None:
        """
        Take an object that was read while the partition is opened.
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
        self._objects.append(_StoredObject(self.log_end, chain, found.number))

    def begin_at(self, offset: int) -> None:
        """
        Begin at an offset that may only be known from a snapshot.
        """
        if offset > self._tail.end:
            self._tail = BatchCache(offset)
        self.log_start, self.log_end = self._tail.start, self._tail.end
        self.high_watermark = self.log_end

    async def forget(self, offset: int) -> None:
        """
        Delete the objects that end before the offset; a snapshot has their state.
        """
        gone = [stored for stored in self._objects if stored.end <= offset]
        if not gone:
            return
        self._objects = self._objects[len(gone) :]
        self._tail.cut(gone[-1].end)
        self.log_start = self._tail.start
        for chain, number in {stored.chain: stored.number for stored in gone}.items():
            await chain.forget(number + 1)

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._uncommitted.fail(why)
        self._next.clear()

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf) -> Read:
        self._check_led()
        self._check_offset(offset)
        end = self.high_watermark
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        if offset >= end:
            return Read([], 0, end, end, self.log_start, aborted)
        found, size = self._tail.read(offset, max_bytes, at_least_one, end)
        return Read(found, size, end, end, self.log_start, aborted)

    def find_time(self, timestamp: int) -> TimestampAndOffset | None:
        self._check_led()
        return find_time(self._readable(), timestamp)

    def find_max_time(self) -> TimestampAndOffset | None:
        self._check_led()
        return find_max_time(self._readable())

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_led()
        return EpochEnd(leader_epoch, self.log_end) if leader_epoch == self.leader_epoch else None

    def expire(self) -> Deferred[None]:
        return succeed(None)  # the state of a coordinator is kept until a snapshot has it

    async def _raise_log_start(self, offset: int) -> None:
        reason = f"{self.topic.name}-{self.index} has the state of a coordinator, which goes when a snapshot has it"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)

    def _readable(self) -> list[Batch]:
        found = [batch for data in self._tail.batches for batch in batches(data)]
        return [batch for batch in found if batch.header.base_offset < self.high_watermark]

    def _write(self, batch: Batch) -> None:
        data = b"".join(placed(batch, self.log_end, self.leader_epoch))
        base_offset = self.log_end
        self.log_end += batch.header.last_offset_delta + 1
        self._tail.add(data, base_offset, self.log_end)
        self._next.append(data)
        if len(self._next) == 1 and self._underway < _ON_THEIR_WAY:
            self._clock.callLater(0, self._send)

    def _written(self) -> None:
        """
        Nobody can read the batch yet.
        """

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        return self._when_committed(offset)

    def _when_committed(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self.high_watermark else self._uncommitted.wait(offset)

    def _become_ready(self, _: None) -> None:
        self._underway = 0
        self._send()

    def _send(self) -> None:
        if not self._next or self.lost or self._underway >= _ON_THEIR_WAY:
            return
        payload, self._next = b"".join(self._next), []
        self._underway += 1
        self._chain.append(payload).addCallback(self._sent, self.log_end).addErrback(self._not_sent)

    def _sent(self, number: int, end: int) -> None:
        self._underway -= 1
        if self.lost:
            return
        self._objects.append(_StoredObject(end, self._chain, number))
        self.high_watermark = end
        self._uncommitted.reached(end)
        self._listeners.wake()
        self._send()

    def _not_sent(self, failure: Failure) -> None:
        """
        Give the partition up, because it is unknown what the chain has; it is read again under a new epoch.
        """
        if self.lost or failure.check(CancelledError):
            return
        reason = f"{self.topic.name}-{self.index} cannot be written: {failure.getErrorMessage()}"
        self.lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))


_NAME = re.compile("snapshot-([0-9]{20})")


class ChainSnapshots:
    """
    The snapshots of one partition. `saved` is called with an offset before which the log is no longer needed.
    """

    def __init__(
        self,
        seaweed: SeaweedCluster,
        folder: str,
        in_turns: Cooperator,
        saved: Callable[[int], Awaitable[None]],
    ) -> None:
        self._seaweed = seaweed
        self._folder = folder
        self._in_turns = in_turns
        self._saved = saved

    def load(self) -> Deferred[Snapshot]:
        return Deferred.fromCoroutine(self._load())

    def save(self, snapshot: Snapshot) -> Deferred[None]:
        return Deferred.fromCoroutine(self._save(snapshot))

    async def _load(self) -> Snapshot:
        for offset, name, size in reversed(await self._names()):
            data = await (await self._seaweed.filer()).files.read(f"{self._folder}/{name}", 0, size)
            if is_whole(data):
                return Snapshot(offset, read_state(data))
        return Snapshot(EARLIEST_OFFSET, [])

    async def _save(self, snapshot: Snapshot) -> None:
        written: list[bytes] = []
        await self._in_turns.coiterate(write_state(iter(snapshot.state), written))
        name = f"snapshot-{snapshot.offset:020d}"
        await (await self._seaweed.filer()).files.put(f"{self._folder}/{name}", b"".join(written))
        for _, older, _ in await self._names():
            if older < name:
                await (await self._seaweed.filer()).delete(f"{self._folder}/{older}")
        await self._saved(snapshot.offset)

    async def _names(self) -> list[tuple[int, str, int]]:
        """
        Offset, name and size of each snapshot, oldest first.
        """
        found = [
            (_NAME.fullmatch(entry.name), entry)
            for entry in await (await self._seaweed.filer()).all_entries(self._folder)
        ]
        return sorted((int(match[1]), entry.name, entry.attributes.file_size) for match, entry in found if match)
