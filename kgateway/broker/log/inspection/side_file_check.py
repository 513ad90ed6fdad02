"""
Checks the side files of a partition: leader epochs, producer snapshots, aborted transactions, states of coordinators.
"""

from pathlib import Path

from kgateway.broker.log.inspection.findings import Finding, Reached, Steps, Survey
from kgateway.broker.log.segments.batch_scan import Damage
from kgateway.broker.log.segments.damage import walk
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.partition.leader_epochs import EPOCH_FILE, LeaderEpochs
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, load_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.partition.transactions import checked_aborted
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import BatchHeader

_AGAIN = "with the gateway stopped, remove it and all .snapshot files beside it: they are rebuilt from the batches"
_EITHER = (
    "consumers get CORRUPT_MESSAGE for batches that differ from it; if a single batch differs, restore its segment "
    "from a copy; if all batches from there on differ, remove this file with the gateway stopped: it is rebuilt from "
    "the batches"
)


class EpochCheck:
    """
    The leader epoch file of a partition, as far as it is sound. It has nothing before the log start; if that is not
    known, the file has it.
    """

    def __init__(self, survey: Survey, folder: Path, log_start: int | None = None) -> None:
        self._survey = survey
        self._path = folder / EPOCH_FILE
        try:
            self._data: bytes | None = survey.read(self._path)
        except FileNotFoundError:
            self._data = None
        epochs = LeaderEpochs()
        epochs.read(self._data or b"")
        self._is_whole = epochs.encoded() == self._data
        rows = [line.split() for line in epochs.encoded().decode().splitlines()[2:]]
        self._rows = [(int(epoch), int(start)) for epoch, start in rows]
        first = self._rows[0][1] if self._rows else EARLIEST_OFFSET
        self._log_start = first if log_start is None or survey.in_use else log_start

    def first(self, header: BatchHeader) -> Finding | None:
        """
        Check a batch with another leader epoch than the one before it.
        """
        epoch, offset = header.partition_leader_epoch, header.base_offset
        if offset < self._log_start:
            return None
        known = [row for row in self._rows if row[1] <= offset]
        told = known[-1][0] if known else -1
        may_be_behind = not self._survey.was_clean and len(known) == len(self._rows) and told < epoch
        if told == epoch or not self._is_whole or may_be_behind:
            return None
        what = f"it has leader epoch {'none' if told < 0 else told}, but the batch there has {epoch}"
        return Finding(self._path, what, _EITHER, offset=offset)

    def steps(self, reached: Reached) -> Steps:
        """
        Check the file once the logs have been read.
        """
        if self._data is None:
            if self._survey.was_clean and reached.next_offset:  # an empty log needs none
                yield Finding(self._path, "it is missing", _AGAIN)
        elif not self._is_whole:
            yield Finding(self._path, "it is damaged", _AGAIN)
        elif reached.is_known and self._rows and self._rows[-1][1] > reached.next_offset:
            epoch, start = self._rows[-1]
            what = f"in it leader epoch {epoch} begins at offset {start}, but the log ends at {reached.next_offset}"
            yield Finding(self._path, what, _AGAIN)


def check_snapshot(survey: Survey, path: Path) -> Steps:
    if not load_snapshot(survey.read(path), ProducerTable(), 0):
        what = "it is damaged, and batches that producers repeat might not be recognised"
        yield Finding(path, what, "with the gateway stopped, remove it: it is rebuilt from the batches")


def check_aborted(survey: Survey, path: Path, base: int, end: int) -> Steps:
    """
    Check the index of aborted transactions of the segment with these offsets.
    """
    if checked_aborted(survey.read(path), base, end) is None:
        what = "it is damaged, and consumers of committed records might get aborted ones"
        yield Finding(
            path, what, "no action is needed: it is rebuilt from the batches when the partition is next opened"
        )


def check_end(folder: Path, offsets: list[int], reached: Reached) -> Steps:
    """
    Check that the log reaches as far as its snapshots.
    """
    for offset in offsets:
        if offset > reached.next_offset:
            what = f"it has producers up to offset {offset}, but the log ends at {reached.next_offset}"
            remedy = (
                "the records between are lost, unless the segments are restored from a copy; otherwise remove this file"
            )
            yield Finding(folder / file_name(offset, SNAPSHOT), what, remedy)


def check_state(survey: Survey, path: Path) -> Steps:
    """
    Check a snapshot of a coordinator's state: groups with their offsets, or transactions.
    """
    file = survey.disk.open(path)
    try:
        for found in walk(file.read, file.size, 0):
            if isinstance(found, Damage):
                remedy = "with the gateway stopped, remove it: it is rebuilt from the records of the partition"
                yield Finding(path, found.reason, remedy, byte=found.position)
    finally:
        file.close()
    survey.tally.files += 1
    survey.tally.bytes += file.size
