"""
What was published to one partition lately, as Kafka's batches: consumers that are not far behind read it here, and what
is in no file of the cluster yet is published out of it again where a broker is killed.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from kgateway.broker.spool import InMemory, Piece, Spool, Stored, read
from kgateway.broker.tail import Tail
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


class Lately:
    """
    In temporary files where there is room, else in memory.
    """

    def __init__(self, spool: Spool, memory_bytes: Callable[[], int], start: int) -> None:
        self._spool = spool
        self._memory_bytes = memory_bytes  # what may be there of what is in files of the cluster
        self.begin_at(start)
        spool.serve(self)

    def begin_at(self, offset: int) -> None:
        """
        Forget all there is; the next batch has this offset.
        """
        self._tail: Tail[Stored] = Tail(offset)
        self._in_memory = 0  # bytes
        self._safe = offset

    @property
    def start(self) -> int:
        """
        The first offset that is here.
        """
        return self._tail.start

    @property
    def unsafe(self) -> int:
        """
        How many bytes are not known to be in files of the cluster.
        """
        return self._tail.size_from(self._safe)

    def add(self, data: bytes, base_offset: int, end: int) -> None:
        """
        One more batch.
        """
        stored = self._spool.keep(data)
        if isinstance(stored, InMemory):
            self._in_memory += len(data)
        self._tail.add(stored, base_offset, end)

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        """
        Whole batches from the one on that has the offset.
        """
        return _read(self._tail.read(offset, max_bytes, at_least_one, stop)[0])

    def each_from(self, offset: int) -> Iterator[Buffer]:
        """
        Each batch from the one on that has the offset, as they are when it is their turn.
        """
        while (found := self._tail.at(offset)) is not None:
            stored, offset = found
            yield from _read([stored])

    def all_from(self, offset: int) -> Iterator[Buffer]:
        """
        All batches from the one on that has the offset, as they are now; each is read when it is its turn.
        """
        return (data for stored in self._tail.from_offset(offset) for data in _read([stored]))

    def safe_to(self, offset: int) -> None:
        """
        All before the offset is in files of the cluster, and may go.
        """
        self._safe = offset
        self._shrink()

    def let_go(self) -> None:
        self._shrink()
        self._tail.exchange(self._without_file)

    def _shrink(self) -> None:
        tail, memory_bytes = self._tail, self._memory_bytes()
        while (first := tail.first) is not None and tail.first_end <= self._safe:
            if not (first.age.is_over or self._in_memory > memory_bytes):
                break
            if isinstance(first, InMemory):
                self._in_memory -= len(first)
            tail.drop_first()

    def _without_file(self, stored: Stored) -> Stored | None:
        """
        What must stay keeps no file of an age that is over, which has much else.
        """
        if not stored.age.is_over:
            return None
        if isinstance(stored, Piece):
            with suppress(OSError):  # who needs it is told
                stored = InMemory(stored.read(), stored.age)
                self._in_memory += len(stored)
        return stored


def _read(found: list[Stored]) -> list[Buffer]:
    try:
        return read(found)
    except OSError as error:
        reason = f"what was produced lately cannot be read from its temporary file: {error}"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from error
