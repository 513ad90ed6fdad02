"""
Searches by timestamp in what a partition has in files.

The ledger has the largest timestamp of each row, as producers have said; so only rows are read that can have what is
looked for. A row that turns out not to have it is corrected. What the ledger does not cover yet is read as a whole. If
a message has no timestamp but the time at which it was published, the names of the files say where to look.
"""

from collections.abc import AsyncIterator

from kgateway.broker.partition.timestamp_search import find_max_time, find_time
from kgateway.broker.seaweedmq.files.log_files import TIMESTAMP_MAX
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.cluster.partition import TimestampAndOffset
from kgateway.records.batch import NO_TIMESTAMP, Batch, batches

_READ_BYTES = 1 << 18


class FileTimeSearch:
    """
    A search in the records between two offsets of one partition, all of which are in files.
    """

    def __init__(
        self, files: PartitionFiles, message_format: MessageFormat, ledger: Ledger, start: int, stop: int
    ) -> None:
        self._files = files
        self._format = message_format
        self._rows = ledger.rows
        self._covered = min(max(ledger.end, start), stop)  # before this the ledger knows all
        self._start, self._stop = start, stop

    async def first(self, timestamp: int) -> TimestampAndOffset | None:
        """
        The first record with this timestamp or a later one.
        """
        if not self._format.numbered:
            return await self._first_between(await self._published(timestamp), self._stop, timestamp)
        rows = self._rows
        while (index := rows.first_from(timestamp)) is not None:
            row = rows.at(index)
            if row.kafka >= self._stop:
                return None
            found = await self._first_between(row.kafka, row.end, timestamp)
            if found:
                return found
            rows.correct(row, timestamp - 1)
        return await self._first_between(self._covered, self._stop, timestamp)

    async def largest(self, best: TimestampAndOffset | None) -> TimestampAndOffset | None:
        """
        The first of the records with the largest timestamp, unless the known one after them, `best`, has a larger one.
        """
        if not self._format.numbered:
            latest = await self._published(TIMESTAMP_MAX)
            return _larger(await self._largest_between(latest, self._stop), best)
        best = _larger(await self._largest_between(self._covered, self._stop), best)
        rows = self._rows
        while (index := rows.highest()) is not None:
            row = rows.at(index)
            largest, is_old = best.timestamp if best else NO_TIMESTAMP, row.kafka < self._stop
            if row.max_timestamp < largest + (not is_old) or row.max_timestamp == NO_TIMESTAMP:
                break
            found = await self._largest_between(row.kafka, row.end) if is_old else best
            if found and found.timestamp >= row.max_timestamp:
                return found
            rows.correct(row, found.timestamp if found else NO_TIMESTAMP)
        return best

    async def _published(self, timestamp: int) -> int:
        await self._files.refresh()
        offset = await self._files.offset_before(timestamp)
        return self._stop if offset is None else offset

    async def _first_between(self, offset: int, stop: int, timestamp: int) -> TimestampAndOffset | None:
        async for piece in self._pieces(offset, stop):
            found = find_time(piece, timestamp, self._start)
            if found:
                return found
        return None

    async def _largest_between(self, offset: int, stop: int) -> TimestampAndOffset | None:
        best: TimestampAndOffset | None = None
        async for piece in self._pieces(offset, stop):
            best = _larger(best, find_max_time(piece, self._start))
        return best

    async def _pieces(self, offset: int, stop: int) -> AsyncIterator[list[Batch]]:
        while offset < stop:
            found = await self._files.read(offset, _READ_BYTES, True, stop)
            piece = [batch for data in found for batch in batches(data)]
            if not piece:
                break
            yield piece
            offset = piece[-1].header.last_offset + 1


def _larger(one: TimestampAndOffset | None, other: TimestampAndOffset | None) -> TimestampAndOffset | None:
    """
    The one with the larger timestamp; the first if both are equal, or there is no other.
    """
    return other if other and (one is None or other.timestamp > one.timestamp) else one
