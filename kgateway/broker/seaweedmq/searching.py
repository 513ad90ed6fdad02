"""
Finds records by their timestamps in what a partition has in files.

The ledger says of each row what the largest timestamp in it is, as producers have said; so only rows are read that can
have what is looked for. A row that has it not, whatever was said, is remembered as what it is. What the ledger does not
cover yet is read as a whole. Where a message has no timestamp but the time at which it was published, the names of the
files say where to look.
"""

from collections.abc import AsyncIterator

from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_rows import Row, Rows
from kgateway.broker.seaweedmq.log_files import TIMESTAMP_MAX
from kgateway.broker.times import find_max_time, find_time
from kgateway.cluster.partition import Found
from kgateway.records.batch import NO_TIMESTAMP, Batch, batches

_READ_BYTES = 1 << 18


class Searching:
    """
    In the records between two offsets of one partition, all of which are in files.
    """

    def __init__(self, history: History, form: Form, ledger: Ledger | None, start: int, stop: int) -> None:
        self._history = history
        self._form = form
        self._rows = ledger.rows if ledger else Rows()
        self._covered = min(max(ledger.end, start), stop) if ledger else start  # before this the ledger knows all
        self._start, self._stop = start, stop

    async def first(self, timestamp: int) -> Found | None:
        """
        The first record with this timestamp or a later one.
        """
        if not self._form.numbered:
            return await self._first_between(await self._published(timestamp), self._stop, timestamp)
        rows = self._rows
        while (place := rows.first_from(timestamp)) is not None:
            number, row = rows.first + place, rows.at(place)
            if row.kafka >= self._stop:
                return None
            found = await self._first_between(row.kafka, row.end, timestamp)
            if found:
                return found
            self._correct(number, row, timestamp - 1)
        return await self._first_between(self._covered, self._stop, timestamp)

    async def largest(self, best: Found | None) -> Found | None:
        """
        The first of the records with the largest timestamp, unless the one behind them that is known has a larger one.
        """
        if not self._form.numbered:
            latest = await self._published(TIMESTAMP_MAX)
            return _larger(await self._largest_between(latest, self._stop), best)
        best = _larger(await self._largest_between(self._covered, self._stop), best)
        rows = self._rows
        while (place := rows.highest()) is not None:
            number, row = rows.first + place, rows.at(place)
            largest, is_old = best.timestamp if best else NO_TIMESTAMP, row.kafka < self._stop
            if row.max_timestamp < largest + (not is_old) or row.max_timestamp == NO_TIMESTAMP:
                break
            found = await self._largest_between(row.kafka, row.end) if is_old else best
            if found and found.timestamp >= row.max_timestamp:
                return found
            self._correct(number, row, found.timestamp if found else NO_TIMESTAMP)
        return best

    def _correct(self, number: int, row: Row, max_timestamp: int) -> None:
        """
        No record of a row has a later timestamp than this one.
        """
        place = number - self._rows.first
        if 0 <= place < len(self._rows) and self._rows.at(place) == row:  # it is still there, and has not grown
            self._rows.correct(place, max_timestamp)

    async def _published(self, timestamp: int) -> int:
        await self._history.refresh()
        offset = await self._history.offset_before(timestamp)
        return self._stop if offset is None else offset

    async def _first_between(self, offset: int, stop: int, timestamp: int) -> Found | None:
        async for piece in self._pieces(offset, stop):
            found = find_time(piece, timestamp, self._start)
            if found:
                return found
        return None

    async def _largest_between(self, offset: int, stop: int) -> Found | None:
        best: Found | None = None
        async for piece in self._pieces(offset, stop):
            best = _larger(best, find_max_time(piece, self._start))
        return best

    async def _pieces(self, offset: int, stop: int) -> AsyncIterator[list[Batch]]:
        while offset < stop:
            found = await self._history.read(offset, _READ_BYTES, True, stop)
            piece = [batch for data in found for batch in batches(data)]
            if not piece:
                break
            yield piece
            offset = piece[-1].header.last_offset + 1


def _larger(one: Found | None, other: Found | None) -> Found | None:
    """
    The one that has the larger timestamp; the first where both have the same, or there is no other.
    """
    return other if other and (one is None or other.timestamp > one.timestamp) else one
