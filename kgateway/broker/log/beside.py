"""
The files beside the segments that tell of producers, of transactions and of leader epochs, so that a start need not
look at all batches.
"""

from contextlib import closing, suppress
from pathlib import Path

from kgateway.broker import aborted, producer_snapshots
from kgateway.broker.aborted import ABORTED_INDEX, AbortedTransactions
from kgateway.broker.epochs import EPOCH_FILE, Epochs
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.segment import Segment, file_name
from kgateway.broker.producer_snapshots import SNAPSHOT
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.partition import EARLIEST_OFFSET


class Beside:
    """
    Those of one partition. There is a snapshot of the producers at each border of segments, and the newest; that one
    goes once the checkpoint tells of a newer one.
    """

    def __init__(self, log: PartitionLog, epochs: Epochs, producers: ProducerTable, snapshot: int) -> None:
        self._log = log
        self._epochs = epochs
        self._producers = producers
        self._aborted = producers.transactions.aborted
        self._told = snapshot  # the offset up to which a snapshot tells
        self._newest = self._snapshot_at(snapshot)
        self._stale: list[Path] = []
        self._aborted_told = snapshot - 1  # the last marker that a file tells of

    def settle(self) -> None:
        """
        Let them, and the indexes, tell of all that is in the log.
        """
        last = self._newest
        self._log.save_indexes()
        self._write()
        self._newest = self._snapshot_at(self._log.end_offset)
        if last and last != self._newest:
            self._stale.append(last)

    def roll(self) -> Path:
        """
        Begin a new segment; the log that is full, of which they tell.
        """
        border = self._write()
        sealed = self._log.roll().path
        if self._newest == border:
            self._newest = None  # it stays
        return sealed

    def told(self) -> None:
        """
        The checkpoint says how far they tell: what told of less is not needed any more.
        """
        while self._stale:
            with suppress(FileNotFoundError):
                self._log.files.disk.remove(self._stale.pop())

    def _write(self) -> Path:
        """
        The producers and epochs as they are now; where the producers are.
        """
        offset, disk = self._log.end_offset, self._log.files.disk
        path = self._path(offset)
        self._save_aborted()
        if offset != self._told or offset == EARLIEST_OFFSET:  # one that may be synced is not written again
            disk.write(path, producer_snapshots.written(self._producers), sync=False)
            self._told = offset
        disk.write(self._log.folder / EPOCH_FILE, self._epochs.written(), sync=False)
        return path

    def _save_aborted(self) -> None:
        disk, last = self._log.files.disk, self._log.segments[-1]
        self._aborted_told = save_aborted(disk, last, self._aborted, since=self._aborted_told)

    def _snapshot_at(self, offset: int) -> Path | None:
        """
        The snapshot that the next one takes the place of; one at the border of a segment stays.
        """
        is_border = any(segment.base_offset == offset for segment in self._log.segments)
        return None if is_border else self._path(offset)

    def _path(self, offset: int) -> Path:
        return self._log.folder / file_name(offset, SNAPSHOT)


def save_aborted(disk: Disk, segment: Segment, found: AbortedTransactions, *, since: int, sync: bool = False) -> int:
    """
    Write which transactions were aborted by markers in this segment, behind the last one that is told of already; which
    that is now.
    """
    entries = found.ended_between(max(segment.base_offset, since + 1), segment.next_offset)
    if not entries:
        return since
    with closing(disk.open(segment.path.with_suffix(ABORTED_INDEX), create=True)) as file:
        file.append([aborted.written(entries)])
        if sync:
            file.sync()
    return entries[-1].last_offset
