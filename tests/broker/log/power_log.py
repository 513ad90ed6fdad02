"""
What the log of a partition may contain, and what it must, by the answers for each batch.

Batches form a tree: the parent of each is the last batch when it was appended. A log that lost its end continues from
an older one, and is still a path from the root; a log that is no such path has lost something in the middle, has
something twice or out of order, or something that was never sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from kgateway.broker.partition.producer_state import WINDOW, ProducerTable
from kgateway.cluster.partition import EpochEnd, TimestampAndOffset
from kgateway.records.batch import HEAD_SIZE, Batch, BatchHeader, read_batch
from kgateway.records.builder import BatchBuilder

NO_PRODUCER = -1
_SHOWN = 3


class Broken(AssertionError):
    """
    A promise was broken.
    """


class Outlasts(IntEnum):
    """
    What a batch has to survive after an answer for it.
    """

    NOTHING = 0
    PROCESS = 1
    MACHINE = 2


@dataclass(eq=False, slots=True)
class Sent:
    """
    A batch that has an offset.
    """

    batch: Batch
    behind: "Sent | None"
    base_offset: int
    epoch: int  # epoch of the leader
    outlasts: Outlasts = Outlasts.NOTHING
    was_read: bool = False
    failed: bool = False  # its acknowledgement was received
    followers: dict[tuple[bytes, int], "Sent"] = field(default_factory=dict)

    @property
    def header(self) -> BatchHeader:
        return self.batch.header

    @property
    def data(self) -> bytes:
        """
        The bytes that the broker does not change.
        """
        return bytes(self.batch.data[HEAD_SIZE:])

    @property
    def end(self) -> int:
        return self.base_offset + self.header.last_offset_delta + 1

    def __str__(self) -> str:
        return f"batch {self.base_offset}-{self.end - 1} of epoch {self.epoch}, {len(self.data)} bytes"


_EMPTY = read_batch(BatchBuilder().build())
_EMPTY.header.last_offset_delta = -1


class ExpectedLog:
    def __init__(self, name: str, *, fsync: bool, expires: bool = False) -> None:
        self.name = name
        self.fsync = fsync
        self._synced_from = 0  # whether what can be read from here on is synced
        self.expires = expires  # whether records may expire
        self.start = 0
        self._may_begin = 0
        self.tip = self._root = Sent(_EMPTY, None, 0, -1, was_read=True)
        self._gone = self._root  # the last batch wholly before the start
        self.epoch = -1
        self._read: dict[tuple[int, int], bytes] = {}  # epoch and offset: the record that readers have seen there

    def configured(self, *, fsync: bool, expires: bool) -> None:
        """
        Apply another config of the topic. What can be read already is not affected.
        """
        if fsync and not self.fsync:
            self._synced_from = self.tip.end
        self.fsync, self.expires = fsync, self.expires or expires

    def path(self) -> list[Sent]:
        """
        The log, from its first batch on.
        """
        return list(self._back())[::-1]

    def kept(self) -> list[Sent]:
        """
        The readable part of the log; the beginning of its first batch may be deleted.
        """
        return [sent for sent in self.path() if sent.end > self.start]

    def asked_to_begin(self, offset: int) -> None:
        """
        Note that a client wants everything below the offset to be deleted.
        """
        self._may_begin = max(self._may_begin, offset)

    def begins(self, offset: int) -> None:
        """
        Note the log start that the broker reports. It never decreases again, and everything below had been synced, so
        that only later records can ever be lost.
        """
        if offset < self.start:
            raise Broken(f"{self.name} begins at {offset}, and has begun at {self.start}")
        if offset > (self.tip.end if self.expires else self._may_begin):
            raise Broken(f"{self.name} begins at {offset}, which nobody wanted")
        self.start = offset
        for sent in self.path():
            if sent.base_offset < offset:
                sent.outlasts = Outlasts.MACHINE
            if sent.end <= offset:
                self._gone = sent

    def in_log(self, producer_id: int) -> list[Sent]:
        """
        The batches of a producer's last epoch that must be remembered, the last one first.
        """
        found = list[Sent]()
        for sent in self._back():
            header = sent.header
            if header.producer_id == producer_id:
                if len(found) == WINDOW or (found and found[0].header.producer_epoch != header.producer_epoch):
                    break
                found.append(sent)
        return found

    def check_producers(self, table: ProducerTable) -> None:
        """
        Check that the remembered producers are those of the log.
        """
        ids = {sent.header.producer_id for sent in self._back()} - {NO_PRODUCER}
        expected = {
            number: [(sent.header.base_sequence, sent.base_offset) for sent in self.in_log(number)] for number in ids
        }
        known = {
            number: [(written.base_sequence, written.base_offset) for written in reversed(producer.window)]
            for number, producer in table.producers.items()
        }
        if known != expected:
            raise Broken(f"{self.name}: of producers is known {known}, and the log tells {expected}")

    def appended(self, batch: Batch, base_offset: int, epoch: int) -> Sent:
        """
        Note the offset of a new batch. If it is not the end, the batch that had it must have failed.
        """
        while self.tip.end > base_offset:
            if not self.tip.failed or self.tip.outlasts or self.tip.behind is None:
                raise Broken(f"{self.name}: offset {base_offset} was given out, and {self.tip} has it")
            self.tip = self.tip.behind
        if self.tip.end != base_offset:
            raise Broken(f"{self.name}: offset {base_offset} was given out, and {self.tip.end} is next")
        self.tip = self.cut_off(batch, epoch)
        return self.tip

    def cut_off(self, batch: Batch, epoch: int) -> Sent:
        """
        Note a batch whose append was cut off, and which may be there or not.
        """
        sent = Sent(batch, self.tip, self.tip.end, epoch)
        self.tip.followers[sent.data, epoch] = sent
        return sent

    def promise(self, sent: Sent, outlasts: Outlasts) -> None:
        """
        Note that the batch was acknowledged.
        """
        if sent.failed:
            raise Broken(f"{self.name}: {sent} was acknowledged, and had failed")
        sent.outlasts = max(sent.outlasts, outlasts)

    def readable(self, high_watermark: int) -> None:
        """
        Note that readers may get everything below this offset. If appends are synced, that cannot be undone.
        """
        if high_watermark > self.tip.end:
            raise Broken(f"{self.name}: the high watermark is {high_watermark}, and the log ends at {self.tip.end}")
        for sent in self._back():
            if sent.base_offset < high_watermark < sent.end:
                raise Broken(f"{self.name}: the high watermark {high_watermark} is within {sent}")
            if sent.end <= high_watermark:
                if sent.was_read:
                    return
                sent.was_read = True
                synced = self.fsync and sent.base_offset >= self._synced_from
                sent.outlasts = max(sent.outlasts, Outlasts.MACHINE if synced else Outlasts.PROCESS)
                self._note_read(sent)

    def _note_read(self, sent: Sent) -> None:
        """
        Note that the record at an offset of an epoch was read, and must be the same for ever (KIP-320).
        """
        for offset in range(sent.base_offset, sent.end):
            if self._read.setdefault((sent.epoch, offset), sent.data) != sent.data:
                raise Broken(f"{self.name}: offset {offset} of epoch {sent.epoch} was read, and is another batch now")

    def stopped(self) -> None:
        """
        Note a clean stop: everything promised is synced.
        """
        for sent in self._back():
            if sent.outlasts:
                sent.outlasts = Outlasts.MACHINE

    def found(self, batches: list[Batch], ended: Outlasts) -> None:
        """
        Check the log after the end of the process, or of the machine.
        """
        last = self._gone
        for batch in batches:
            last = self._following(last, batch)
        before, self.tip = self.path(), last
        now = set(self._back())
        lost = [sent for sent in before if sent not in now and sent.outlasts >= ended]
        if lost:
            shown = "; ".join(map(str, lost[:_SHOWN]))
            raise Broken(f"{self.name} ends at {last.end}, and has lost {len(lost)} batches: {shown}")
        for sent in now:
            sent.failed = False
            sent.outlasts = max(sent.outlasts, ended)

    def same(self, batches: list[Batch]) -> None:
        """
        Check the log of a running process up to its high watermark; its start may have moved since the first of these
        was read.
        """
        first = batches[0].header.base_offset if batches else 0
        there = [sent for sent in self.path() if sent.base_offset >= first]
        for sent, batch in zip(there, batches, strict=False):
            if sent is not self._following(sent.behind or self._root, batch):
                raise Broken(f"{self.name} has not {sent}, which it had")

    def _following(self, last: Sent, batch: Batch) -> Sent:
        header, data = batch.header, bytes(batch.data[HEAD_SIZE:])
        sent = last.followers.get((data, header.partition_leader_epoch))
        if sent is None or header.base_offset != sent.base_offset:
            known = [sent for (key, _), sent in last.followers.items() if key == data]
            expected = f"which is {known[0]}" if known else "which was never there"
            raise Broken(
                f"{self.name}: behind {last} is batch {header.base_offset}-{header.last_offset} of epoch "
                f"{header.partition_leader_epoch}, {len(data)} bytes, {expected}"
            )
        return sent

    def epoch_is(self, epoch: int) -> None:
        """
        Check the current leader epoch, which never decreases.
        """
        if epoch < max(self.epoch, self.tip.epoch):
            raise Broken(f"{self.name}: the leader epoch is {epoch}, and was {max(self.epoch, self.tip.epoch)}")
        self.epoch = epoch

    def find_time(self, timestamp: int) -> TimestampAndOffset | None:
        """
        The expected result of a search for this time.
        """
        for sent in self.kept():
            if sent.header.max_timestamp >= timestamp:
                return TimestampAndOffset(max(sent.base_offset, self.start), sent.header.max_timestamp, sent.epoch)
        return None

    def epoch_end(self, epoch: int) -> EpochEnd:
        """
        The end of an epoch that has records.
        """
        later = [sent.base_offset for sent in self.path() if sent.epoch > epoch]
        return EpochEnd(epoch, later[0] if later else self.tip.end)

    def _back(self) -> Iterator[Sent]:
        sent = self.tip
        while sent.behind is not None:
            yield sent
            sent = sent.behind
