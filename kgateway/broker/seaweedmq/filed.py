"""
A partition whose newest records are at hand, and all others in SeaweedMQ's log files: what is read of it, and what is
let go.
"""

from collections.abc import Callable, Iterator
from math import inf

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.owned import OwnedPartition
from kgateway.broker.retention import Limits, limits_of
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweedmq.cold_reads import ColdReads
from kgateway.broker.seaweedmq.in_kafkas_words import in_kafkas_words
from kgateway.broker.seaweedmq.lately import Lately
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.old_files import OldFiles
from kgateway.broker.seaweedmq.opened import Opened
from kgateway.broker.seaweedmq.searching import Searching
from kgateway.broker.times import find_max_time, find_time
from kgateway.cluster.partition import Aborted, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.records.batch import Batch, batches
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.types import Buffer

_MS, _BYTES = "retention.ms", "retention.bytes"
_NO_LIMIT = -1


class FiledPartition(OwnedPartition):
    """
    What follows from it says what is written.
    """

    _log = Logger()

    def __init__(
        self, topic: Topic, index: int, now_ms: Callable[[], int], opened: Opened, link: Link, lately: Lately
    ) -> None:
        super().__init__(topic, index, now_ms, opened.producers)
        self.log_start, self.log_end = opened.start, opened.end.offset
        self._form = link.form
        self._link = link
        self._ledger = link.ledger
        self._safe = self.log_end  # before which all is in files
        self._lately = lately
        self._cold = ColdReads(link.history.read, link.clock, self._waiters.wake)
        self._old_files = OldFiles(link.history, link.form, link.seaweed, link.demand_ownership)
        self._beginning = DeferredLock()

    @property
    def high_watermark(self) -> int:
        """
        Before which all can be read.
        """
        raise NotImplementedError

    @property
    def last_stable(self) -> int:
        return self.high_watermark

    @property
    def size(self) -> int:
        """
        Of its files as they were listed last, in bytes, which are those of SeaweedMQ's messages.
        """
        return sum(file.size for file in self._link.history.files)

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        self._check_owned()
        self._check_offset(offset)
        stop = self.high_watermark
        if offset >= stop:
            return self._read([], isolation)
        until = self._lately.start
        if offset >= until:
            try:
                return self._read(self._lately.read(offset, max_bytes, at_least_one, stop), isolation)
            except KafkaError:
                if offset >= self._safe:
                    raise
            until = self._safe
        found = self._cold.read(offset, max_bytes, at_least_one, min(stop, until), due)
        if isinstance(found, Deferred):
            return found.addCallbacks(self._read, self._unreadable, (isolation,))
        return self._read(found, isolation)

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(in_kafkas_words(self._expire()))

    async def _expire(self) -> None:
        """
        Here a file is what goes as a whole.
        """
        self._check_owned()
        limits, start = self._retention(), self.log_start
        if not limits.are_none:
            start = await self._old_files.kept_from(start, self.high_watermark, limits, self._now_ms())
        if start > self.log_start:
            await self._begin_at(start)
        elif await self._old_files.are_before(start):  # they could not be removed before
            await self._old_files.remove_before(start)

    def _retention(self) -> Limits:
        """
        How old and large it may become. Of a topic that others have made only what is set for it counts: what they have
        kept so far is not for a default of Kafka's to delete.
        """
        limits, config = limits_of(self.topic), self.topic.config.overrides
        if not self._link.is_found:
            return limits
        return Limits(limits.ms if _MS in config else _NO_LIMIT, limits.bytes if _BYTES in config else _NO_LIMIT)

    async def _begin_at(self, offset: int) -> None:
        beginning = self._beginning.run(lambda: Deferred.fromCoroutine(self._begin_log_at(offset)))
        await in_kafkas_words(beginning)

    async def _begin_log_at(self, offset: int) -> None:
        if offset <= self.log_start:  # by now
            return
        self._link.demand_ownership()
        await self._link.beside.keep_log_start(offset)
        self._check_owned()
        self.log_start = offset
        if self._ledger:
            self._ledger.begin_at(offset)
        self._waiters.wake()
        self._old_files.remove_before(offset).addErrback(self._not_removed)

    def _not_removed(self, failure: Failure) -> None:
        reason = failure.getErrorMessage()
        self._log.info("old files of {topic} are removed later: {reason}", topic=self.topic.name, reason=reason)

    def find_time(self, timestamp: int) -> Deferred[Found | None]:
        held, old = self._to_search()

        async def find() -> Found | None:
            return (await old.first(timestamp) if old else None) or find_time(held, timestamp, self.log_start)

        return Deferred.fromCoroutine(find()).addErrback(self._unreadable)

    def find_max_time(self) -> Deferred[Found | None]:
        held, old = self._to_search()

        async def find() -> Found | None:
            found = find_max_time(held, self.log_start)
            return await old.largest(found) if old else found

        return Deferred.fromCoroutine(find()).addErrback(self._unreadable)

    def _read(self, found: list[Buffer], isolation: Isolation) -> Read:
        self._check_owned()
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        return Read(found, sum(map(len, found)), self.high_watermark, self.last_stable, self.log_start, aborted)

    def _to_search(self) -> tuple[Iterator[Batch], Searching | None]:
        """
        The batches that can be read and are in no file, and what finds records in files, if there are older ones.
        """
        self._check_owned()
        held = (batch for data in self._lately.all_from(self._safe) for batch in batches(data))
        stop, start, link = self.high_watermark, self._safe, self._link
        readable = (batch for batch in held if batch.header.base_offset < stop)
        if start <= self.log_start:
            return readable, None
        ledger = self._ledger.ledger if self._ledger else None
        return readable, Searching(link.history, self._form, ledger, self.log_start, min(start, stop))

    def _unreadable(self, failure: Failure) -> Failure:
        self._check_owned()
        if isinstance(failure.value, RpcError | OSError):
            reason = f"{self.topic.name}-{self.index} cannot be read from the filer: {failure.value}"
            return Failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        if isinstance(failure.value, Malformed):
            reason = f"{self.topic.name}-{self.index} has a log file that is damaged: {failure.value}"
            return Failure(KafkaError(ErrorCode.CORRUPT_MESSAGE, reason))
        return failure
