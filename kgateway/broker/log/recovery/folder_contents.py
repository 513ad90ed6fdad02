"""
The files that the last process has left in the folder of a partition.
"""

from collections.abc import Container, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from kgateway.broker.log.files.disk import TEMPORARY, Disk
from kgateway.broker.log.segments.file_names import (
    CLEANED_SUFFIX,
    COMPACTED,
    DELETED_SUFFIX,
    LOG,
    file_name,
    numbered,
    offsets_of,
)
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.partition.leader_epochs import EPOCH_FILE, LeaderEpochs
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, load_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransaction, checked_aborted, encode_aborted
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET


def left_over(names: Iterable[str], log_start: int) -> list[str]:
    """
    The files wholly before the log start, those marked as deleted, and those that compaction did not put in place.
    """
    names = list(names)
    first = max((base for base in offsets_of(names, LOG) if base <= log_start), default=log_start)
    numbers = {name: found for name in names if (found := numbered(name))}
    before = [name for name, (offset, suffix) in numbers.items() if suffix != SNAPSHOT and offset < first]
    return [name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX))] + before


class FolderContents:
    """
    The files of one partition. Useless ones are removed as soon as they are seen; those before the log start when there
    is time, because they may be many.
    """

    def __init__(self, disk: Disk, folder: Path, log_start: int = EARLIEST_OFFSET) -> None:
        self._disk = disk
        self._folder = folder
        self._sizes = disk.names(folder)
        self._aborted: dict[int, list[AbortedTransaction]] = {}  # by the segment with their markers
        self.needs_folder_sync = False  # snapshots beyond the log were removed
        self.left_over = [folder / name for name in left_over(self._sizes, self._needed_from(log_start))]
        for path in self.left_over:
            del self._sizes[path.name]
        for name in [name for name in self._sizes if name.endswith(TEMPORARY)]:
            self._remove(name)
        _, *others = self.segments or [EARLIEST_OFFSET]
        for name in [file_name(base, LOG) for base in others]:
            if not self._sizes[name]:  # nothing was written to it yet: the segment before it continues
                self._remove(name)

    def _needed_from(self, log_start: int) -> int:
        """
        The offset whose segment and all later ones are needed. If a segment began at the log start just before a power
        cut, and its snapshot was not synced yet, only the segment before tells about the producers.
        """
        bases = [base for base in self.segments if base <= log_start]
        if len(bases) > 1 and not self._has_sound_snapshot(bases[-1]):
            return bases[-2]
        return log_start

    def _has_sound_snapshot(self, offset: int) -> bool:
        name = file_name(offset, SNAPSHOT)
        return name in self._sizes and load_snapshot(self._disk.read(self._folder / name), ProducerTable(), now_ms=0)

    @property
    def is_swapping(self) -> bool:
        return COMPACTED in self._sizes

    @property
    def segments(self) -> list[int]:
        return offsets_of(self._sizes, LOG)

    def size(self, base: int) -> int:
        return self._sizes[file_name(base, LOG)]

    def is_indexed(self, base: int) -> bool:
        return all(file_name(base, suffix) in self._sizes for suffix in (INDEX, TIME_INDEX))

    @property
    def has_aborted(self) -> bool:
        return any(name.endswith(ABORTED_INDEX) for name in self._sizes)

    def read_aborted(self, settled: int) -> int:
        """
        Read the aborted transactions. Returns how far the side files can be trusted then: a damaged one is rebuilt by
        recovering its segment and everything after it.
        """
        ends = dict(zip(self.segments, [*self.segments[1:], LONG_MAX], strict=False))
        for base in offsets_of(self._sizes, ABORTED_INDEX):
            data = self._disk.read(self._folder / file_name(base, ABORTED_INDEX))
            entries = checked_aborted(data, base, ends.get(base, LONG_MAX))
            if entries is None:
                return min(settled, base)
            self._aborted[base] = entries
        return settled

    def cut_aborted(self, end: int) -> Iterator[AbortedTransaction]:
        """
        Yield the aborted transactions that ended before this offset, and remove all others from their files.
        """
        for base in offsets_of(self._sizes, ABORTED_INDEX):
            found = self._aborted.get(base, [])
            kept = [transaction for transaction in found if transaction.last_offset < end]
            if kept != found or base not in self._aborted:
                self._disk.write(self._folder / file_name(base, ABORTED_INDEX), encode_aborted(kept), sync=True)
            yield from kept

    def read_epochs(self, epochs: LeaderEpochs) -> bool:
        return EPOCH_FILE in self._sizes and epochs.read(self._disk.read(self._folder / EPOCH_FILE))

    def read_producers(self, producers: ProducerTable, settled: int, now_ms: int) -> int:
        """
        Load the newest snapshot of producers that is sound and not beyond `settled`. Returns its offset.
        """
        for offset in reversed(offsets_of(self._sizes, SNAPSHOT)):
            path = self._folder / file_name(offset, SNAPSHOT)
            if offset <= settled and load_snapshot(self._disk.read(path), producers, now_ms):
                return offset
            self._remove(path.name)
            self.needs_folder_sync = True
        return EARLIEST_OFFSET

    def sync_producers(self, offset: int) -> None:
        """
        Sync the producer snapshot at this offset, if there is one.
        """
        path = self._folder / file_name(offset, SNAPSHOT)
        if path.name in self._sizes:
            with closing(self._disk.open(path)) as file:
                file.sync()
            self._disk.sync_folder(self._folder)

    def remove_old_snapshots(self, newest: int, bases: Container[int]) -> None:
        """
        Remove the snapshots before the newest, except for those at the base of a segment.
        """
        for offset in offsets_of(self._sizes, SNAPSHOT):
            if offset < newest and offset not in bases:
                self._remove(file_name(offset, SNAPSHOT))

    def _remove(self, name: str) -> None:
        self._disk.remove(self._folder / name)
        del self._sizes[name]
