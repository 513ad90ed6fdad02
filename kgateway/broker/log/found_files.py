"""
The files that another process has left in the folder of a partition.
"""

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from kgateway.broker import aborted, producer_snapshots
from kgateway.broker.aborted import ABORTED_INDEX, AbortedTransaction
from kgateway.broker.epochs import EPOCH_FILE, Epochs
from kgateway.broker.log.disk import TEMPORARY, Disk
from kgateway.broker.log.segment import CLEANED, LET_GO, LOG, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.producer_snapshots import SNAPSHOT
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET

COMPACTED = "kgateway.compacted"  # decides which compacted segments count (compaction/swapping.py)
SUFFIXES = (LOG, INDEX, TIME_INDEX, ABORTED_INDEX, SNAPSHOT)  # of what a segment has
_NUMBERED = re.compile(r"([0-9]{20})(\.[a-z]+)")


def numbered(name: str) -> tuple[int, str] | None:
    """
    The offset and the suffix in the name of a segment's file or a snapshot's; `None` where it is the name of neither.
    """
    found = _NUMBERED.fullmatch(name)
    is_ours = found and found[2] in SUFFIXES and int(found[1]) <= LONG_MAX
    return (int(found[1]), found[2]) if found and is_ours else None


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """
    The offsets in those of the names that have this suffix.
    """
    return sorted(found[0] for found in map(numbered, names) if found and found[1] == suffix)


def left_over(names: Iterable[str], log_start: int) -> list[str]:
    """
    Those of a folder's names whose files are wholly before the log start, those that were let go already, and those
    that compaction has written in vain.
    """
    names = list(names)
    first = max((base for base in offsets_of(names, LOG) if base <= log_start), default=log_start)
    numbers = {name: found for name in names if (found := numbered(name))}
    before = [name for name, (offset, suffix) in numbers.items() if suffix != SNAPSHOT and offset < first]
    return [name for name in names if name.endswith((LET_GO, CLEANED))] + before


class FoundFiles:
    """
    Those of one partition. What is of no use to anybody goes as soon as that is seen; what is before the log start does
    when there is time, for it may be much.
    """

    def __init__(self, disk: Disk, folder: Path, log_start: int = EARLIEST_OFFSET) -> None:
        self._disk = disk
        self._folder = folder
        self._sizes = disk.names(folder)
        self._aborted: dict[int, list[AbortedTransaction]] = {}  # by the segment with their markers
        self.has_misleading = False  # snapshots of what is not in the log any more, until the folder is synced
        self.left_over = [folder / name for name in left_over(self._sizes, log_start)]
        for path in self.left_over:
            del self._sizes[path.name]
        for name in [name for name in self._sizes if name.endswith(TEMPORARY)]:
            self._remove(name)
        _, *others = self.segments or [EARLIEST_OFFSET]
        for name in [file_name(base, LOG) for base in others]:
            if not self._sizes[name]:  # nothing was written in it yet: the segment before it goes on
                self._remove(name)

    @property
    def is_swapping(self) -> bool:
        """
        Whether compacted segments were taking the place of others.
        """
        return COMPACTED in self._sizes

    @property
    def segments(self) -> list[int]:
        """
        The offsets with which they begin.
        """
        return offsets_of(self._sizes, LOG)

    def size(self, base: int) -> int:
        """
        Of the segment that begins there.
        """
        return self._sizes[file_name(base, LOG)]

    def is_indexed(self, base: int) -> bool:
        """
        Whether the segment has its indexes.
        """
        return all(file_name(base, suffix) in self._sizes for suffix in (INDEX, TIME_INDEX))

    @property
    def tells_of_aborted(self) -> bool:
        """
        Whether there are files that tell of aborted transactions.
        """
        return any(name.endswith(ABORTED_INDEX) for name in self._sizes)

    def read_aborted(self, settled: int) -> int:
        """
        Find what is told of transactions that were aborted. How far what was settled is to be trusted then: one of
        these files that cannot be is made again, by looking through its segment and all behind it.
        """
        ends = dict(zip(self.segments, [*self.segments[1:], LONG_MAX], strict=False))
        for base in offsets_of(self._sizes, ABORTED_INDEX):
            data = self._disk.read(self._folder / file_name(base, ABORTED_INDEX))
            entries = aborted.sound(data, base, ends.get(base, LONG_MAX))
            if entries is None:
                return min(settled, base)
            self._aborted[base] = entries
        return settled

    def keep_aborted(self, end: int) -> Iterator[AbortedTransaction]:
        """
        Those that ended before this offset; the files tell of no others any more.
        """
        for base in offsets_of(self._sizes, ABORTED_INDEX):
            found = self._aborted.get(base, [])
            kept = [one for one in found if one.last_offset < end]
            if kept != found or base not in self._aborted:
                self._disk.write(self._folder / file_name(base, ABORTED_INDEX), aborted.written(kept), sync=True)
            yield from kept

    def read_epochs(self, epochs: Epochs) -> bool:
        """
        Whether the epochs are known.
        """
        return EPOCH_FILE in self._sizes and epochs.read(self._disk.read(self._folder / EPOCH_FILE))

    def read_producers(self, producers: ProducerTable, settled: int, now_ms: int) -> int:
        """
        The producers as they were after the last offset for which that is known and to be trusted; that offset.
        """
        for offset in reversed(offsets_of(self._sizes, SNAPSHOT)):
            path = self._folder / file_name(offset, SNAPSHOT)
            if offset <= settled and producer_snapshots.read(self._disk.read(path), producers, now_ms):
                return offset
            self._remove(path.name)
            self.has_misleading = True
        return EARLIEST_OFFSET

    def sync_producers(self, offset: int) -> None:
        """
        Let the file that tells of the producers at this offset outlast the machine, if there is one.
        """
        path = self._folder / file_name(offset, SNAPSHOT)
        if path.name in self._sizes:
            with closing(self._disk.open(path)) as file:
                file.sync()
            self._disk.sync_folder(self._folder)

    def keep_producers(self, newest: int, bases: Container[int]) -> None:
        """
        The newest of the files that tell of producers is needed, and those at the borders of segments.
        """
        for offset in offsets_of(self._sizes, SNAPSHOT):
            if offset < newest and offset not in bases:
                self._remove(file_name(offset, SNAPSHOT))

    def _remove(self, name: str) -> None:
        self._disk.remove(self._folder / name)
        del self._sizes[name]
