"""
The log files of a partition that go: as a whole, and from the first on.

The newest stays, whatever is in it, for brokers count on from there; the log may begin behind it all the same. What is
in a file is known from the beginning of the next one, and from the ledger.
"""

from itertools import pairwise, zip_longest

from twisted.internet.defer import Deferred, DeferredLock

from kgateway.broker.retention import Limits, Piece, Standing, goes
from kgateway.broker.seaweed.retrying import Demand
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.log_files import LogFile
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import NO_TIMESTAMP

_SECOND_MS = 1_000


class OldFiles:
    """
    Of one partition.
    """

    def __init__(self, history: History, form: Form, seaweed: Seaweed, demand_ownership: Demand) -> None:
        self._history = history
        self._form = form
        self._seaweed = seaweed
        self._demand_ownership = demand_ownership
        self._removing = DeferredLock()

    async def kept_from(self, log_start: int, high_watermark: int, limits: Limits, now_ms: int) -> int:
        """
        The offset with which the log begins when all is gone that it keeps no longer.
        """
        await self._history.refresh()
        files = self._history.files
        log = Standing(sum(file.size for file in files), log_start, high_watermark)
        left = log.size
        for file, following in zip_longest(files, files[1:]):
            piece = await self._piece(file, following, limits, now_ms)
            left -= piece.size
            if not goes(piece, left, log, limits, now_ms, is_last=following is None):
                break
            log_start = max(log_start, piece.end)
        return log_start

    async def are_before(self, offset: int) -> bool:
        """
        Whether there are any of which all is before the offset.
        """
        files = self._history.files
        return len(files) > 1 and await self._is_before(files[1], offset)

    def remove_before(self, offset: int) -> Deferred[None]:
        """
        Let them go.
        """
        return self._removing.run(lambda: Deferred.fromCoroutine(self._remove_before(offset)))

    async def _remove_before(self, offset: int) -> None:
        await self._history.refresh()
        filer = await self._seaweed.filer()
        for file, following in pairwise(self._history.files):
            if not await self._is_before(following, offset):
                break
            await filer.delete(file.path, demand=self._demand_ownership)
        await self._history.refresh()

    async def _is_before(self, following: LogFile, offset: int) -> bool:
        """
        Whether all is before the offset that comes before this file. What has the last of Kafka's offsets never is: the
        log goes on from there.
        """
        first = await self._history.first(following)
        return first is not None and first <= offset

    async def _piece(self, file: LogFile, following: LogFile | None, limits: Limits, now_ms: int) -> Piece:
        history = self._history
        end = await history.first(following) if following else None
        if end is None:
            end = (await history.end(EARLIEST_OFFSET)).offset
        newest = await self._newest(file, end, now_ms) if limits.ms >= 0 else None
        return Piece(file.size, end, NO_TIMESTAMP if newest is None else newest, file.changed_s * _SECOND_MS)

    async def _newest(self, file: LogFile, end: int, now_ms: int) -> int | None:
        """
        The largest timestamp in a file, as far as the ledger tells; `None` where records have none, or there are none.
        """
        ledger, first = self._history.ledger, await self._history.first(file)
        if ledger is None or not self._form.numbered or first is None or first >= end:
            return None
        newest = ledger.newest_between(max(first, ledger.start), end)
        return now_ms if newest is None and end > ledger.start else newest  # nobody knows yet, so nothing goes
