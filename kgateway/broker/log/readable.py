"""
What readers ask of a partition whose log is files.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.broker.log.checkpoints import Place
from kgateway.broker.log.partition_log import End
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.reading import Reader
from kgateway.broker.log.recovery import Recovered
from kgateway.broker.log.time_search import TimeSearch
from kgateway.broker.owned import OwnedPartition
from kgateway.cluster.partition import EpochEnd, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


class ReadablePartition(OwnedPartition):
    """
    One partition, open. What follows from this writes it.
    """

    def __init__(self, topic: Topic, index: int, recovered: Recovered, parts: LogParts) -> None:
        super().__init__(topic, index, parts.now_ms, recovered.producers)
        self.log = recovered.log
        self._parts = parts
        self._epochs = recovered.epochs
        self.log_start, self.log_end = recovered.log_start, self.log.end_offset
        self.high_watermark = self.log_end
        recovered.producers.transactions.settle(self.high_watermark)
        self._safe_end = self.log.end  # where the high watermark is while it is behind the end
        self._stable_end = self.log.end  # where the last stable offset was when somebody asked
        self._looked_through = recovered.looked_through  # what was told by its batches alone
        self._reader = Reader(self.log, parts, self._epoch_at)

    @property
    def last_stable(self) -> int:
        return self._stable(self.high_watermark)

    @property
    def folder(self) -> Path:
        return self.log.folder

    @property
    def place(self) -> Place:
        """
        What checkpoints call it.
        """
        return self.topic.name, self.index

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        self._check_owned()
        self._check_offset(offset)
        is_committed = isolation is Isolation.READ_COMMITTED
        end = self._decided if is_committed else self._readable
        if offset >= end.offset:
            return self._read([], offset, is_committed)
        data = self._reader.read(offset, end, max_bytes, at_least_one)
        if isinstance(data, Deferred):
            return data.addCallbacks(self._waited, self._unless_lost, (offset, is_committed))
        return self._read(data, offset, is_committed)

    def _waited(self, data: list[bytes], offset: int, is_committed: bool) -> Read:
        """
        What was let go meanwhile is not given out: nobody knows any more what of it was aborted.
        """
        if is_committed:
            self._check_offset(offset)
        return self._read(data, offset, is_committed)

    def _read(self, data: list[bytes], offset: int, is_committed: bool) -> Read:
        batches: list[Buffer] = [*data]
        aborted = self._aborted(offset, batches) if is_committed else None
        return Read(batches, sum(map(len, data)), self.high_watermark, self.last_stable, self.log_start, aborted)

    def find_time(self, timestamp: int) -> Deferred[Found | None]:
        return self._find(lambda search: search.first(timestamp))

    def find_max_time(self) -> Deferred[Found | None]:
        return self._find(TimeSearch.largest)

    def _find(self, look: Callable[[TimeSearch], Found | None]) -> Deferred[Found | None]:
        self._check_owned()
        return Deferred.fromCoroutine(self._search(look)).addErrback(self._unless_lost)

    async def _search(self, look: Callable[[TimeSearch], Found | None]) -> Found | None:
        """
        Again where what was looked through, or found, was let go or compacted meanwhile.
        """
        search = TimeSearch(self._parts.files.disk, self.log.segments, self.log_start, self._readable)
        try:
            found = await self._parts.in_thread(partial(look, search))
        except FileNotFoundError:
            if search.is_of(self.log):
                raise
            return await self._search(look)
        finally:
            for segment in search.searched:
                self._reader.loaded(segment)
        is_there = search.is_of(self.log) and (found is None or found.offset >= self.log_start)
        return found if is_there else await self._search(look)

    def _unless_lost(self, failure: Failure) -> Failure:
        """
        What could not be read because the topic was deleted meanwhile.
        """
        self._check_owned()
        if isinstance(failure.value, OSError):
            reason = f"{self.folder.name} cannot be read: {plain(failure.value)}"
            return Failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        return failure

    @property
    def _readable(self) -> End:
        return self.log.end if self.high_watermark == self.log_end else self._safe_end

    @property
    def _decided(self) -> End:
        """
        Where those read to who want what is committed.
        """
        offset = self.last_stable
        if offset == self.high_watermark:
            return self._readable
        if self._stable_end.offset != offset:
            self._stable_end = self._reader.end_before(offset)
        return self._stable_end

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return self._epochs.end(leader_epoch, self.log_end)

    def _epoch_at(self, offset: int) -> int | None:
        """
        Under which epoch the offset was given; `None` where only the batch itself has told that.
        """
        return None if offset in self._looked_through else self._epochs.at(offset)
