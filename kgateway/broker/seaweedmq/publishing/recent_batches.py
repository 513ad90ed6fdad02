"""
The recent batches of one partition: consumers that are not far behind read them here, and what is in no file of the
cluster yet is published from here again when a broker is killed.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from kgateway.broker.partition.batch_cache import BatchCache
from kgateway.broker.partition.spool import InMemory, Spool, SpooledBytes, Stored, read_spooled
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


class RecentBatches:
    """
    Batches in temporary files if there is room, else in memory.
    """

    def __init__(self, spool: Spool, memory_bytes: Callable[[], int], start: int) -> None:
        self._spool = spool
        self._memory_bytes = memory_bytes  # that flushed batches may take
        self.begin_at(start)
        spool.add_user(self)

    def begin_at(self, offset: int) -> None:
        """
        Forget all batches; the next one has this offset.
        """
        self._tail: BatchCache[Stored] = BatchCache(offset)
        self._in_memory = 0  # bytes
        self._flushed = offset

    @property
    def start(self) -> int:
        """
        The first offset that is here.
        """
        return self._tail.start

    @property
    def end(self) -> int:
        """
        The offset after the last one that is here.
        """
        return self._tail.end

    @property
    def unflushed(self) -> int:
        """
        Bytes that are not known to be in files of the cluster.
        """
        return self._tail.size_from(self._flushed)

    def add(self, data: bytes, base_offset: int, end: int) -> None:
        stored = self._spool.keep(data)
        if isinstance(stored, InMemory):
            self._in_memory += len(data)
        self._tail.add(stored, base_offset, end)

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        """
        Whole batches from the one that has the offset.
        """
        return _read(self._tail.read(offset, max_bytes, at_least_one, stop)[0])

    def each_from(self, offset: int) -> Iterator[Buffer]:
        """
        Each batch from the one that has the offset, as they are when it is their turn.
        """
        while (found := self._tail.at(offset)) is not None:
            stored, offset = found
            yield from _read([stored])

    def all_from(self, offset: int) -> Iterator[Buffer]:
        """
        All batches from the one that has the offset, as they are now; each is read when it is its turn.
        """
        return (data for stored in self._tail.from_offset(offset) for data in _read([stored]))

    def flushed_to(self, offset: int) -> None:
        """
        Everything before the offset is in files of the cluster, and may be dropped.
        """
        self._flushed = offset
        self._shrink()

    def let_go(self) -> None:
        self._shrink()
        self._tail.exchange(self._without_file)

    def _shrink(self) -> None:
        tail, memory_bytes = self._tail, self._memory_bytes()
        while (first := tail.first) is not None and tail.first_end <= self._flushed:
            if not (first.lifetime.is_over or self._in_memory > memory_bytes):
                break
            if isinstance(first, InMemory):
                self._in_memory -= len(first)
            tail.drop_first()

    def _without_file(self, stored: Stored) -> Stored | None:
        """
        A copy in memory of a batch whose file is about to be given up: a reference would keep the whole file.
        """
        if not stored.lifetime.is_over:
            return None
        if isinstance(stored, SpooledBytes):
            with suppress(OSError):  # its reader gets the error
                stored = InMemory(stored.read(), stored.lifetime)
                self._in_memory += len(stored)
        return stored


def _read(found: list[Stored]) -> list[Buffer]:
    try:
        return read_spooled(found)
    except OSError as error:
        reason = f"recent records cannot be read from their temporary file: {error}"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from error
