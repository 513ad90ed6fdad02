"""
The state of a coordinator, kept in a partition of an internal topic: the same over every broker.

Records that are appended in one call form one batch. A snapshot is the state after all records before an offset. It is
kept elsewhere, as a sequence of record batches, and a replay needs only what the partition has from that offset on. If
a transaction was open at the snapshot, the offset is the first one of that transaction, because the snapshot does not
have its records. Replaying a record twice does no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.partition.listeners import Listeners
from kgateway.cluster.partition import EARLIEST_OFFSET, Appended, Isolation, Origin
from kgateway.cluster.pending_values import PendingValues
from kgateway.interfaces import Cancel, IPartition, IReplay, IStateLog, KeyValue, ProducerEpoch
from kgateway.records.batch import Batch, batches, crc_holds
from kgateway.records.builder import BatchBuilder
from kgateway.records.control import read_marker
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer

STATE_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
PIECE_RECORDS = 500  # a millisecond or two to decode
_READ_BYTES = 1 << 20

_NOT_OURS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Snapshot(NamedTuple):
    """
    The state after all records before the offset.
    """

    offset: int
    state: Iterable[KeyValue]


@implementer(IReplay)
class Replay:
    """
    A state, and the batches after it.
    """

    def __init__(self, state: Iterable[KeyValue], found: Iterable[Buffer]) -> None:
        self.undecided: PendingValues[bytes, bytes] = PendingValues()
        self.began: dict[int, int] = {}
        self._records = chain(state, self._decided(found))

    def __iter__(self) -> Iterator[list[KeyValue]]:
        return self

    def __next__(self) -> list[KeyValue]:
        piece = list(islice(self._records, PIECE_RECORDS))
        if not piece:
            raise StopIteration
        return piece

    def _decided(self, found: Iterable[Buffer]) -> Iterator[KeyValue]:
        for data in found:
            for batch in batches(data):
                if batch.header.is_control:
                    yield from self._ended(batch)
                elif batch.header.is_transactional:
                    self._hold(batch)
                else:
                    yield from self._plain(batch)

    def _plain(self, batch: Batch) -> Iterator[KeyValue]:
        undecided = self.undecided
        for record in records(batch):
            if record.key is not None:
                if undecided:
                    (undecided.forget if record.value is None else undecided.overtake)(record.key)
                yield record.key, record.value

    def _hold(self, batch: Batch) -> None:
        self.began.setdefault(batch.header.producer_id, batch.header.base_offset)
        for record in records(batch):
            if record.key is not None and record.value is not None:
                self.undecided.put(batch.header.producer_id, record.key, record.value)

    def _ended(self, batch: Batch) -> Iterator[KeyValue]:
        marker = read_marker(batch)
        if marker:
            self.began.pop(batch.header.producer_id, None)
            yield from self.undecided.end(batch.header.producer_id, commits=marker.commits)


class Snapshots(Protocol):
    """
    Where the last snapshot of one state log is kept.
    """

    def load(self) -> Deferred[Snapshot]:
        """
        Load the last snapshot, or an empty one at the earliest offset if there is none.
        """

    def save(self, snapshot: Snapshot) -> Deferred[None]: ...


class MemorySnapshots:
    def __init__(self) -> None:
        self._last = Snapshot(EARLIEST_OFFSET, [])

    def load(self) -> Deferred[Snapshot]:
        return succeed(self._last)

    def save(self, snapshot: Snapshot) -> Deferred[None]:
        self._last = snapshot
        return succeed(None)


@implementer(IStateLog)
class StateLog:
    """
    A partition as the log of a coordinator: its NOT_LEADER_OR_FOLLOWER becomes NOT_COORDINATOR.
    """

    def __init__(self, partition: IPartition, snapshots: Snapshots, now_ms: Callable[[], int]) -> None:
        self.epoch = partition.leader_epoch
        self.index = partition.index
        self._partition = partition
        self._snapshots = snapshots
        self._now_ms = now_ms
        self._loss_listeners = Listeners()
        self._unwatch = partition.watch(self._check_lost)

    @property
    def is_lost(self) -> bool:
        return self._partition.lost is not None

    def replay(self) -> Deferred[IReplay]:
        return Deferred.fromCoroutine(self._replay()).addErrback(_not_coordinator)

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        now_ms, builder = self._now_ms(), BatchBuilder()
        if producer is not None:
            builder.producer_id, builder.producer_epoch = producer
            builder.is_transactional = True
        size_max = self._partition.topic.config.max_message_bytes
        for key, value in records:
            if len(key) + len(value or b"") > size_max:
                size = f"{len(key)} bytes of key and {len(value or b'')} of value"
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE, f"a record has {size}, but may have at most {size_max} in all"
                )
            builder.append(key, value, timestamp=now_ms)
        try:
            appended = self._partition.append(builder.batch(), Origin.COORDINATOR)
        except KafkaError as error:
            raise _translated(error) from None
        for waited in (appended.stored, appended.committed):
            if waited is not None:
                waited.addErrback(_not_coordinator)
        return appended

    def snapshot(self, state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        partition = self._partition
        stable = partition.last_stable
        taken = Snapshot(stable if undecided_from is None else min(stable, undecided_from), list(state))
        return Deferred.fromCoroutine(self._save(taken, partition.log_end)).addErrback(_not_coordinator)

    def on_lost(self, listener: Callable[[], None]) -> Cancel:
        cancel = self._loss_listeners.add(listener)
        if self._partition.lost:  # after its listeners were called
            cancel()
            listener()
        return cancel

    def _check_lost(self) -> None:
        if self._partition.lost:
            self._unwatch()
            self._loss_listeners.wake()

    async def _replay(self) -> IReplay:
        """
        Read all bytes first, which may have to wait. Decoding them takes time, so it is done piece by piece.
        """
        last = await self._snapshots.load()
        partition, found = self._partition, list[Buffer]()
        offset, end = max(last.offset, partition.log_start), partition.high_watermark
        while offset < end:
            read = partition.read(offset, _READ_BYTES, Isolation.READ_UNCOMMITTED, True)
            if isinstance(read, Deferred):
                read = await read
            if not read.batches:
                break  # only batches without records are left
            found += read.batches
            *_, newest = batches(read.batches[-1])
            offset = newest.header.last_offset + 1
        return Replay(last.state, found)

    async def _save(self, taken: Snapshot, end: int) -> None:
        await self._when_committed(end)
        await self._snapshots.save(taken)

    def _when_committed(self, offset: int) -> Deferred[None]:
        """
        Fires once everything before the offset is committed: a snapshot must not know what a crash can still undo.
        """
        committed: Deferred[None] = Deferred(lambda _: cancel())

        def check() -> None:
            if self._partition.lost:
                cancel()
                committed.errback(self._partition.lost)
            elif self._partition.high_watermark >= offset:
                cancel()
                committed.callback(None)

        cancel = self._partition.watch(check)
        check()
        return committed


def _translated(error: KafkaError) -> KafkaError:
    return KafkaError(ErrorCode.NOT_COORDINATOR, error.message) if error.code in _NOT_OURS else error


def _not_coordinator(failure: Failure) -> Failure:
    return Failure(_translated(failure.value)) if isinstance(failure.value, KafkaError) else failure


def write_state(state: Iterator[KeyValue], written: list[bytes]) -> Iterator[None]:
    """
    Append the parts of the file to `written`, one at each step.
    """
    while piece := list(islice(state, PIECE_RECORDS)):
        builder = BatchBuilder()
        for key, value in piece:
            builder.append(key, value, timestamp=0)
        written.append(bytes(builder.build()))
        yield


def is_whole(data: bytes) -> bool:
    try:
        return all(crc_holds(batch) for batch in batches(data))
    except Malformed:
        return False


def read_state(data: bytes) -> Iterator[KeyValue]:
    for batch in batches(data):
        yield from ((record.key, record.value) for record in records(batch) if record.key is not None)
