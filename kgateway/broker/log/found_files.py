"""
The files that another process has left in the folder of a partition.
"""

import re
from collections.abc import Container, Iterable
from pathlib import Path

from kgateway.broker.log import producer_snapshots
from kgateway.broker.log.disk import TEMPORARY, Disk
from kgateway.broker.log.epochs import EPOCH_FILE, Epochs
from kgateway.broker.log.producer_snapshots import SNAPSHOT
from kgateway.broker.log.segment import LOG, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET

_SUFFIXES = (LOG, INDEX, TIME_INDEX, SNAPSHOT)
_NUMBERED = re.compile(r"([0-9]{20})(\.[a-z]+)")


def numbered(name: str) -> tuple[int, str] | None:
    """
    The offset and the suffix in the name of a segment's file or a snapshot's; `None` where it is the name of neither.
    """
    found = _NUMBERED.fullmatch(name)
    is_ours = found and found[2] in _SUFFIXES and int(found[1]) <= LONG_MAX
    return (int(found[1]), found[2]) if found and is_ours else None


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """
    The offsets in those of the names that have this suffix.
    """
    return sorted(found[0] for found in map(numbered, names) if found and found[1] == suffix)


class FoundFiles:
    """
    Those of one partition. What is of no use to anybody goes as soon as that is seen.
    """

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder
        self._sizes = disk.names(folder)
        for name in [name for name in self._sizes if name.endswith(TEMPORARY)]:
            self._remove(name)
        _, *others = self.segments or [EARLIEST_OFFSET]
        for name in [file_name(base, LOG) for base in others]:
            if not self._sizes[name]:  # nothing was written in it yet: the segment before it goes on
                self._remove(name)

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
        return EARLIEST_OFFSET

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
