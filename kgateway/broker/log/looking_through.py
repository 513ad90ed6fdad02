"""
Looks through a segment behind where its indexes end: notes its batches, goes on behind damage where that may be, and
cuts off what cannot be.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path

from kgateway.broker.log.aside import Cut, cut
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.seeking import seek
from kgateway.broker.log.segment import Segment
from kgateway.broker.log.trust import Trust
from kgateway.broker.log.walking import PIECE, Damage, scan
from kgateway.records.batch import Batch

Work = Callable[[], object]  # for a thread
_BATCHES_A_STEP = 500
_BYTES_A_STEP = 8 << 20
_READ_BEFORE = 1 << 20  # so much may come from the disk with everybody waiting

Behind = tuple[int, int]  # where in the file it goes on, and with which offset


class LookingThrough:
    """
    That of one segment; `note` is told each batch, and says what is wrong with it if anything is.
    """

    def __init__(
        self, files: OpenFiles, segment: Segment, end: int, trust: Trust, note: Callable[[Batch], str | None]
    ) -> None:
        self.faults: list[str] = []
        self._files = files
        self._segment = segment
        self._end = end
        self._trust = trust
        self._note = note

    def steps(self, following: int | None) -> Generator[Work | None, None, None]:
        """
        All of it; `following` is where the next segment begins.
        """
        segment = self._segment
        segment.unchecked = range(segment.size)
        while damage := (yield from self._note_good()):
            behind = yield from self._behind(damage, following)
            if behind is None:
                yield self._told(cut(self._files, segment, damage, self._end, self._trust.known_end))
                return
            position, next_offset = behind
            segment.pass_over(position, next_offset)
            self.faults.append(f"{segment.path}, byte {damage.position}: {damage.reason}; it will not be given out")

    def _note_good(self) -> Generator[Work | None, None, Damage | None]:
        """
        Note batches up to the first that is damaged.
        """
        segment, count, size = self._segment, 0, 0
        if self._end - segment.size > _READ_BEFORE:
            yield self._reading(segment.size)
        for found in scan(self._read, segment.size, self._end, segment.next_offset):
            if isinstance(found, Damage):
                return found
            reason = self._note(found)
            if reason:
                return Damage(segment.size, len(found.data), reason, False, True, found.header.last_offset + 1)
            count, size = count + 1, size + len(found.data)
            if size >= _BYTES_A_STEP:
                count = size = 0
                yield self._reading(segment.size)
            elif count >= _BATCHES_A_STEP:
                count = 0
                yield None
        return None

    def _reading(self, position: int) -> Work:
        """
        Have the system read what comes next, so that nobody else waits for the disk then.
        """
        return partial(
            _read_all, self._files.disk, self._segment.path, position, min(position + _BYTES_A_STEP, self._end)
        )

    def _behind(self, damage: Damage, following: int | None) -> Generator[Work | None, None, Behind | None]:
        """
        Where the log goes on behind damage; `None` where it ends, for what is missing there may have been anything.
        """
        if damage.next_offset is not None:  # it is there, and nothing behind it is missing
            return damage.position + damage.size, damage.next_offset
        if not self._may_follow(self._segment.next_offset):
            return None
        found = None
        if not damage.torn:
            found = yield from self._seek(damage.position + damage.size, damage.position + damage.size + 1)
        found = found or (yield from self._seek(damage.position + 1, self._end))
        if found is None and following is not None:
            found = self._end, following
        return found if found and self._may_follow(found[1] - 1) else None

    def _may_follow(self, missing: int) -> bool:
        """
        Whether a record that is missing can be damaged only, and not have been lost with all behind it.
        """
        return self._trust.process_only or missing < self._trust.synced

    def _seek(self, start: int, stop: int) -> Generator[Work | None, None, Behind | None]:
        """
        The first good batch that begins between these positions.
        """
        least, position = self._segment.next_offset, start
        for found in seek(self._read, start, self._end, lambda offset: offset >= least):
            if isinstance(found, Batch):
                return position, found.header.base_offset
            position += found
            if position >= stop:
                return None
            yield None
        return None

    def _told(self, cut: Cut) -> Work:
        self.faults.append(cut.told)
        return cut.work

    def _read(self, position: int, size: int) -> bytes:
        return self._files.get(self._segment.path).read(position, size)


def _read_all(disk: Disk, path: Path, start: int, end: int) -> None:
    with closing(disk.open(path)) as file:
        for position in range(start, end, PIECE):
            file.read(position, min(PIECE, end - position))
