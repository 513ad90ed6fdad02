"""
Writes what is left of some segments as one, beside them, as `....log.TOKEN.cleaned`: no reader looks for such names,
and the token tells one round from all others, of whatever process.

When whole batches are removed, Kafka leaves a hole. Here one batch without records stands for all of them: every offset
of a log belongs to a batch, so a hole is damage, before compaction as after it. Clients know such batches, because
Kafka has them too.
"""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.file_names import CLEANED_SUFFIX, LOG, file_name
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransaction, encode_aborted
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.batch_rewrite import hole
from kgateway.wire.types import Buffer

FILES = (INDEX, TIME_INDEX, ABORTED_INDEX, LOG)  # of a segment; the log comes last, because with it the others count
_WRITTEN_AT_ONCE = 1 << 20


def cleaned_name(base_offset: int, suffix: str, token: str) -> str:
    """
    The name of a file until it replaces those that it was made from.
    """
    return f"{file_name(base_offset, suffix)}.{token}{CLEANED_SUFFIX}"


class SegmentWriter:
    """
    A segment being written. It is ended or given up, and then closed.
    """

    def __init__(self, disk: Disk, folder: Path, base_offset: int, token: str, index_interval: int) -> None:
        self._disk = disk
        self._folder = folder
        self._token = token
        self._interval = index_interval
        self.segment = Segment(FileCache(disk, 0), folder, base_offset)  # for its indexes alone
        self._file = disk.open(self._path(LOG), create=True)
        self._pieces: list[Buffer] = []
        self._bytes = 0
        self._gone: BatchHeader | None = None  # the first of the batches left out since the last one kept
        self._gone_end = base_offset

    def keep(self, batch: Batch) -> None:
        self._close_hole()
        self._add(batch)

    def leave_out(self, header: BatchHeader) -> None:
        """
        Write nothing of this batch; a batch without records stands for its offsets.
        """
        epoch = self._gone.partition_leader_epoch if self._gone else header.partition_leader_epoch
        if (self._gone_end, epoch) != (header.base_offset, header.partition_leader_epoch):
            self._close_hole()
        self._gone = self._gone or header
        self._gone_end = header.last_offset + 1

    def write_aborted(self, left: Iterable[AbortedTransaction]) -> None:
        self._disk.write(self._path(ABORTED_INDEX), encode_aborted(left), sync=True)

    def end(self, changed_ms: int) -> int:
        """
        Write and sync the rest, except for the names. Returns the size. The segment gets the age of its source, because
        records without timestamps are as old as their file.
        """
        self._close_hole()
        self._write()
        self._disk.set_changed_ms(self._path(LOG), changed_ms)
        self._file.sync()
        self.segment.seal()
        indexes = self.segment.indexes
        for index, suffix in ((indexes.offsets, INDEX), (indexes.times, TIME_INDEX)):
            with closing(self._disk.open(self._path(suffix), create=True)) as file:
                file.append([index.unsaved()])
                file.sync()
        return self.segment.size

    def give_up(self) -> None:
        self._disk.remove(self._path(LOG))

    def close(self) -> None:
        self._file.close()

    def _path(self, suffix: str) -> Path:
        return self._folder / cleaned_name(self.segment.base_offset, suffix, self._token)

    def _close_hole(self) -> None:
        if self._gone:
            first, self._gone = self._gone, None
            self._add(hole(first.base_offset, self._gone_end - 1, first.partition_leader_epoch))

    def _add(self, batch: Batch) -> None:
        self.segment.add(batch.header, batch.header.base_offset, self._interval)
        self._pieces.append(batch.data)
        self._bytes += len(batch.data)
        if self._bytes >= _WRITTEN_AT_ONCE:
            self._write()

    def _write(self) -> None:
        self._file.append([b"".join(self._pieces)])
        self._pieces, self._bytes = [], 0
