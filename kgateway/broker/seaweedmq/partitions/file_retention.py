"""
Retention of a partition: log files are deleted as a whole, and from the first on.

The newest file is kept whatever is in it, because brokers continue to count from there; the log may still begin after
it. What is in a file is known from the beginning of the next one, and from the ledger.
"""

from itertools import pairwise, zip_longest

from twisted.internet.defer import Deferred, DeferredLock

from kgateway.broker.partition.retention import Deletable, LogExtent, RetentionLimits, is_expired
from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.files.log_files import LogFile
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import NO_TIMESTAMP

_SECOND_MS = 1_000


class FileRetention:
    def __init__(
        self, files: PartitionFiles, message_format: MessageFormat, seaweed: SeaweedCluster, check_lease: Precondition
    ) -> None:
        self._files = files
        self._format = message_format
        self._seaweed = seaweed
        self._check_lease = check_lease
        self._deleting = DeferredLock()

    async def kept_from(self, log_start: int, high_watermark: int, limits: RetentionLimits, now_ms: int) -> int:
        """
        The log start when everything expired is deleted.
        """
        await self._files.refresh()
        files = self._files.listed
        log = LogExtent(sum(file.size for file in files), log_start, high_watermark)
        left = log.size
        for file, following in zip_longest(files, files[1:]):
            piece = await self._piece(file, following, limits, now_ms)
            left -= piece.size
            if not is_expired(piece, left, log, limits, now_ms, is_last=following is None):
                break
            log_start = max(log_start, piece.end)
        return log_start

    async def are_before(self, offset: int) -> bool:
        """
        Whether the first file is wholly before the offset, and not the last.
        """
        files = self._files.listed
        return len(files) > 1 and await self._is_before(files[1], offset)

    def delete_before(self, offset: int) -> Deferred[None]:
        return self._deleting.run(lambda: Deferred.fromCoroutine(self._delete_before(offset)))

    async def _delete_before(self, offset: int) -> None:
        await self._files.refresh()
        filer = await self._seaweed.filer()
        for file, following in pairwise(self._files.listed):
            if not await self._is_before(following, offset):
                break
            await filer.delete(file.path, precondition=self._check_lease)
        await self._files.refresh()

    async def _is_before(self, following: LogFile, offset: int) -> bool:
        """
        Whether everything before this file is before the offset. A file with the last of Kafka's offsets never is: the
        log continues from there.
        """
        first = await self._files.first(following)
        return first is not None and first <= offset

    async def _piece(self, file: LogFile, following: LogFile | None, limits: RetentionLimits, now_ms: int) -> Deletable:
        files = self._files
        end = await files.first(following) if following else None
        if end is None:
            end = (await files.end(EARLIEST_OFFSET)).offset
        newest = await self._newest(file, end, now_ms) if limits.ms >= 0 else None
        return Deletable(file.size, end, NO_TIMESTAMP if newest is None else newest, file.changed_s * _SECOND_MS)

    async def _newest(self, file: LogFile, end: int, now_ms: int) -> int | None:
        """
        The largest timestamp in a file, as far as the ledger tells; `None` if records have none, or there are none.
        """
        ledger, first = self._files.ledger, await self._files.first(file)
        if ledger is None or not self._format.numbered or first is None or first >= end:
            return None
        newest = ledger.newest_between(max(first, ledger.start), end)
        return now_ms if newest is None and end > ledger.start else newest  # nobody knows yet, so nothing is deleted
