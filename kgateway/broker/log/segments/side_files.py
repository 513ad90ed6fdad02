"""
Writes the side files of the segments: producer snapshots (.snapshot), aborted transactions (.txnindex) and leader
epochs. With them a start need not read all batches.
"""

from contextlib import closing, suppress
from pathlib import Path

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import SegmentList
from kgateway.broker.partition.leader_epochs import EPOCH_FILE, LeaderEpochs
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, encode_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransactions, encode_aborted
from kgateway.cluster.partition import EARLIEST_OFFSET


class SideFiles:
    """
    The side files of one partition. There is a snapshot at the base of each segment, and one that is the newest; it is
    removed once the checkpoint has passed it.
    """

    def __init__(
        self, segment_list: SegmentList, epochs: LeaderEpochs, producers: ProducerTable, snapshot: int
    ) -> None:
        self._segment_list = segment_list
        self._epochs = epochs
        self._producers = producers
        self._aborted = producers.transactions.aborted
        self._snapshot_offset = snapshot  # of the newest snapshot
        self._newest = self._snapshot_at(snapshot)
        self._stale: list[Path] = []
        self._last_saved_marker = snapshot - 1  # its offset, in a .txnindex

    def settle(self) -> None:
        """
        Bring the side files and the indexes up to the log end.
        """
        last = self._newest
        self._segment_list.save_indexes()
        self._write()
        self._newest = self._snapshot_at(self._segment_list.end_offset)
        if last and last != self._newest:
            self._stale.append(last)

    def roll(self) -> Path:
        """
        Begin a new segment, with side files up to its base. Returns the sealed one.
        """
        border = self._write()
        sealed = self._segment_list.roll().path
        if self._newest == border:
            self._newest = None  # it is kept
        return sealed

    def checkpointed(self) -> None:
        """
        Remove the snapshots that the checkpoint has passed.
        """
        while self._stale:
            with suppress(FileNotFoundError):
                self._segment_list.files.disk.remove(self._stale.pop())

    def _write(self) -> Path:
        offset, disk = self._segment_list.end_offset, self._segment_list.files.disk
        path = self._path(offset)
        self._save_aborted()
        if (
            offset != self._snapshot_offset or offset == EARLIEST_OFFSET
        ):  # a snapshot that may be synced is not written again
            disk.write(path, encode_snapshot(self._producers), sync=False)
            self._snapshot_offset = offset
        disk.write(self._segment_list.folder / EPOCH_FILE, self._epochs.encoded(), sync=False)
        return path

    def _save_aborted(self) -> None:
        disk, last = self._segment_list.files.disk, self._segment_list.segments[-1]
        self._last_saved_marker = save_aborted(disk, last, self._aborted, since=self._last_saved_marker)

    def _snapshot_at(self, offset: int) -> Path | None:
        """
        The path of a snapshot that the next one replaces; `None` at the base of a segment, where it is kept.
        """
        is_border = any(segment.base_offset == offset for segment in self._segment_list.segments)
        return None if is_border else self._path(offset)

    def _path(self, offset: int) -> Path:
        return self._segment_list.folder / file_name(offset, SNAPSHOT)


def save_aborted(disk: Disk, segment: Segment, found: AbortedTransactions, *, since: int, sync: bool = False) -> int:
    """
    Append the transactions that markers in this segment, after the marker `since`, have aborted. Returns the last
    marker that is saved now.
    """
    entries = found.ended_between(max(segment.base_offset, since + 1), segment.next_offset)
    if not entries:
        return since
    with closing(disk.open(segment.path.with_suffix(ABORTED_INDEX), create=True)) as file:
        file.append([encode_aborted(entries)])
        if sync:
            file.sync()
    return entries[-1].last_offset
