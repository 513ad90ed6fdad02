"""
The two indexes of a segment (index.py) and their files: read when they are first needed, saved when that is due, and
let go when memory is wanted.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from struct import Struct

from kgateway.broker.log.disk import Disk, File
from kgateway.broker.log.index import OFFSETS, TIMES, Index

INDEX, TIME_INDEX = ".index", ".timeindex"


class SegmentIndexes:
    """
    Those of one segment, empty at first.
    """

    __slots__ = ("_disk", "_log", "_offsets", "_times")

    def __init__(self, disk: Disk, log: Path) -> None:
        self._disk = disk
        self._log = log  # the file that they tell of
        self._offsets: Index | None = Index(OFFSETS)
        self._times: Index | None = Index(TIMES)

    @property
    def offsets(self) -> Index:
        """
        Where some of the batches begin.
        """
        index = self._offsets  # threads ask for it while it is let go
        if index is None:
            index = self._offsets = self._read(OFFSETS, INDEX)
        return index

    @property
    def times(self) -> Index:
        """
        Which timestamps there are up to where.
        """
        index = self._times
        if index is None:
            index = self._times = self._read(TIMES, TIME_INDEX)
        return index

    @property
    def is_loaded(self) -> bool:
        """
        Whether what readers need of them is in memory.
        """
        return self._offsets is not None

    @property
    def last_time(self) -> tuple[int, int] | None:
        """
        The last entry of the times, without the others: who looks for a time asks every segment for it.
        """
        index = self._times
        if index is None:
            with closing(self._disk.open(self._log.with_suffix(TIME_INDEX))) as file:
                index = Index(TIMES, file.read(max(file.size - TIMES.size, 0), TIMES.size))
        return index.entry(-1) if len(index) else None

    def grow(self) -> Iterator[bool]:
        """
        Whether they are what indexes can be, part by part.
        """
        yield from self.offsets.grows()
        yield from self.times.grows()

    def clear(self) -> None:
        """
        They are to be made anew.
        """
        self._offsets, self._times = Index(OFFSETS), Index(TIMES)

    def forget(self) -> None:
        """
        What the files have is right.
        """
        self._offsets = self._times = None

    def let_go(self) -> None:
        """
        Keep nothing in memory that the files have.
        """
        if self._offsets and self._offsets.is_saved:
            self._offsets = None
        if self._times and self._times.is_saved:
            self._times = None

    def save(self) -> None:
        """
        Bring what the files lack into them.
        """
        rows = ((self._offsets, INDEX), (self._times, TIME_INDEX))
        due = [(index, suffix) for index, suffix in rows if index is not None and not index.is_saved]
        with ExitStack() as stack:
            # The files of offsets are there first, for Kafka's tools read no times without them; what times tell comes
            # first: as far as offsets reach, so do they, wherever a crash or a full disk comes between.
            files = [(index, stack.enter_context(closing(self._file(suffix)))) for index, suffix in due]
            for index, file in reversed(files):
                _save(index, file)

    def _file(self, suffix: str) -> File:
        return self._disk.open(self._log.with_suffix(suffix), create=True)

    def _read(self, entry: Struct, suffix: str) -> Index:
        return Index(entry, self._disk.read(self._log.with_suffix(suffix)))


def _save(index: Index, file: File) -> None:
    if file.size != index.saved:
        file.truncate(index.saved)
    missing = index.unsaved()
    file.append([missing])
    index.saved += len(missing)
    index.is_saved = True
