"""
Recovers one segment: reads what its indexes do not cover, adds its batches, skips damage if nothing can be missing
there, and truncates the segment where the log ends.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.recovery.truncation import Truncation, plan_truncation
from kgateway.broker.log.segments.batch_scan import SCAN_BYTES, Damage, scan
from kgateway.broker.log.segments.damage import search_after
from kgateway.broker.log.segments.segment import Segment
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import Batch

_BATCHES_A_STEP = 500
_BYTES_A_STEP = 8 << 20
_READ_BEFORE = 1 << 20  # this much may be read from the disk on the reactor

Work = Callable[[], object]  # for a thread
Continuation = tuple[int, int]  # where in the file the log continues, and with which offset


class KnownGood(NamedTuple):
    """
    What earlier checkpoints prove about a log. Everything before `synced` is synced; everything before `settled` is as
    it was written. With `nothing_missing` that is so of whatever was written later too: the machine has not restarted
    since, or the last stop was clean. With `clean` everything is synced.
    """

    synced: int
    settled: int
    nothing_missing: bool
    clean: bool = False
    log_start: int = EARLIEST_OFFSET

    def beginning_at(self, log_start: int) -> "KnownGood":
        return self._replace(
            synced=max(self.synced, log_start), settled=max(self.settled, log_start), log_start=log_start
        )

    @property
    def known_end(self) -> int:
        return max(self.synced, self.settled)


class SegmentRecovery:
    """
    Recovers one segment. `add` is called with each batch, and returns what is wrong with it, if anything.
    """

    def __init__(
        self, files: FileCache, segment: Segment, end: int, known_good: KnownGood, add: Callable[[Batch], str | None]
    ) -> None:
        self.faults: list[str] = []
        self._files = files
        self._segment = segment
        self._end = end
        self._known_good = known_good
        self._add = add

    def steps(self, following: int | None) -> Generator[Work | None, None, None]:
        """
        Recover all of it; `following` is the base of the next segment.
        """
        segment = self._segment
        segment.unchecked = range(segment.size)
        while damage := (yield from self._add_good()):
            continuation = yield from self._continuation(damage, following)
            if continuation is None:
                yield self._report(plan_truncation(self._files, segment, damage, self._end, self._known_good.known_end))
                return
            position, next_offset = continuation
            segment.skip_damage(position, next_offset)
            self.faults.append(
                f"{segment.path}, byte {damage.position}: {damage.reason}; skipped: readers get CORRUPT_MESSAGE"
            )

    def _add_good(self) -> Generator[Work | None, None, Damage | None]:
        segment, count, size = self._segment, 0, 0
        if self._end - segment.size > _READ_BEFORE:
            yield self._read_ahead(segment.size)
        for found in scan(self._read, segment.size, self._end, segment.next_offset):
            if isinstance(found, Damage):
                return found
            reason = self._add(found)
            if reason:
                return Damage(segment.size, len(found.data), reason, False, True, found.header.last_offset + 1)
            count, size = count + 1, size + len(found.data)
            if size >= _BYTES_A_STEP:
                count = size = 0
                yield self._read_ahead(segment.size)
            elif count >= _BATCHES_A_STEP:
                count = 0
                yield None
        return None

    def _read_ahead(self, position: int) -> Work:
        return partial(
            _read_all, self._files.disk, self._segment.path, position, min(position + _BYTES_A_STEP, self._end)
        )

    def _continuation(self, damage: Damage, following: int | None) -> Generator[Work | None, None, Continuation | None]:
        """
        Where the log continues after damage; `None` if it ends, because anything may be missing there.
        """
        if damage.next_offset is not None:  # the batch is complete, and nothing after it is missing
            return damage.position + damage.size, damage.next_offset
        if not self._must_be_there(self._segment.next_offset):
            return None
        least = self._segment.next_offset
        good = yield from search_after(self._read, damage, self._end, lambda offset: offset >= least)
        if good:
            found = good.position, good.batch.header.base_offset
        elif following is not None:
            found = self._end, following
        else:
            return None
        return found if self._must_be_there(found[1] - 1) else None

    def _must_be_there(self, offset: int) -> bool:
        """
        Whether the record with this offset was written and cannot be missing: if it cannot be read it is damaged.
        """
        return self._known_good.nothing_missing or offset < self._known_good.synced

    def _report(self, cut: Truncation) -> Work:
        self.faults.append(cut.message)
        return cut.work

    def _read(self, position: int, size: int) -> bytes:
        return self._files.get(self._segment.path).read(position, size)


def _read_all(disk: Disk, path: Path, start: int, end: int) -> None:
    with closing(disk.open(path)) as file:
        for position in range(start, end, SCAN_BYTES):
            file.read(position, min(SCAN_BYTES, end - position))
