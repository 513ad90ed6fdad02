"""
`kgateway seaweedmq verify`: finds log files that are not whole, gaps between them, ledgers whose rows do not follow one
another, and rows that do not agree with the messages of the log. Nothing is changed.
"""

from array import array
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat, PlacedMessage, SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger, Row
from kgateway.broker.seaweedmq.ledger.snapshot import UnusableLedger
from kgateway.broker.seaweedmq.partitions.partition_ledger import empty_ledger
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.wire.errors import Malformed


class FaultKind(Enum):
    SEQUENCE = "sequence"
    TIME = "time"
    COVERAGE = "coverage"


class Fault(NamedTuple):
    kind: FaultKind
    reason: str


def verify(ledger: Ledger, end: int | None = None) -> Iterator[Fault]:
    """
    Find rows that do not follow one another, and what is missing between the start of the log and its end.
    """
    covered, last = ledger.start, None
    for number, row in enumerate(ledger.rows):
        if row.kafka > covered:
            yield _missing("Kafka's offsets", covered, row.kafka, number)
        if last:
            yield from _follows(number, last, row)
            if ledger.section_of(number).first_row < number:
                expected = last.message_offset + (1 if ledger.batched else last.span)
                yield from _messages(number, expected, row.message_offset)
        covered, last = row.end, row
    if end is not None and covered < end:
        yield _missing("Kafka's offsets", covered, end, len(ledger.rows))
    if end is not None and covered > end:
        yield Fault(
            FaultKind.COVERAGE, f"the rows end with Kafka's offset {covered - 1}, but the log ends with {end - 1}"
        )


def _follows(number: int, last: Row, row: Row) -> Iterator[Fault]:
    if row.kafka < last.end:
        reason = f"row {number} begins with Kafka's offset {row.kafka}, but row {number - 1} ends with {last.end - 1}"
        yield Fault(FaultKind.SEQUENCE, reason)
    if row.ts_ns < last.ts_ns:
        reason = f"row {number} has the time {row.ts_ns}, but row {number - 1} has the later {last.ts_ns}"
        yield Fault(FaultKind.TIME, reason)


def _messages(number: int, expected: int, message_offset: int) -> Iterator[Fault]:
    if message_offset < expected:
        reason = f"row {number} begins with message {message_offset}, but row {number - 1} ends with {expected - 1}"
        yield Fault(FaultKind.SEQUENCE, reason)
    if message_offset > expected:
        yield _missing("messages", expected, message_offset, number)


def _missing(what: str, first: int, stop: int, number: int) -> Fault:
    return Fault(FaultKind.COVERAGE, f"{what} {first} to {stop - 1} are in no row before row {number}")


class FilesCheck:
    """
    Checks that SeaweedMQ's offsets are consecutive in the files of a partition: a missing or cut file leaves a gap. All
    messages are shown in their order; what is before the first one was deleted with its files.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._next = 0
        self._damage: list[Fault] = []

    def show_damage(self, path: str, error: Malformed) -> None:
        """
        Note that this file cannot be read any further.
        """
        self._damage.append(Fault(FaultKind.COVERAGE, f"{path} cannot be read to its end: {error}"))

    def show(self, folder: PartitionFolder, entries: Iterable[LoggedMessage]) -> Iterator[Fault]:
        """
        The faults before these messages, or between them.
        """
        yield from self.rest()
        for entry in entries:
            if folder.path != self._path:
                self._next = folder.first_message if self._path else entry.offset
                self._path = folder.path
            if entry.offset > self._next:
                reason = f"messages {self._next} to {entry.offset - 1} of {self._path} are in none of its files"
                yield Fault(FaultKind.COVERAGE, reason)
            self._next = max(self._next, entry.offset + 1)

    def rest(self) -> Iterator[Fault]:
        """
        The faults after the messages that were shown.
        """
        damage, self._damage = self._damage, []
        yield from damage


Generation = tuple[int, RingRange]


class LedgerCheck:
    """
    Compares a ledger with the log, message by message. All messages are shown in their order.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ahead = 0  # how many of Kafka's offsets the log has after the last row
        self._ledger = ledger
        self._seen = array("i", bytes(4 * len(ledger.rows)))  # of each row, how many of its offsets the log has

    def show(self, placed: PlacedMessage, generation: Generation) -> Iterator[Fault]:
        """
        The faults in the row of a message.
        """
        ledger, rows = self._ledger, self._ledger.rows
        offset, span, message_offset, ts_ns, *_ = placed
        if offset + span <= ledger.start:
            return
        if offset >= ledger.end:
            self.ahead += span
            return
        index = bisect_right(rows.kafka, offset) - 1
        if index < 0 or offset >= rows.kafka[index] + rows.spans[index]:
            yield Fault(FaultKind.COVERAGE, f"offset {offset} is in message {message_offset} of the log, but in no row")
            return
        self._seen[index] += span
        row = rows.at(index)
        expected = row.message_offset if ledger.batched else row.message_offset + offset - row.kafka
        if expected != message_offset:
            found = f"but the log has it in message {message_offset}"
            reason = f"row {index} has offset {offset} in message {expected}, {found}"
            yield Fault(FaultKind.SEQUENCE, reason)
        if ledger.section_of(index)[1:] != generation:
            yield Fault(FaultKind.SEQUENCE, f"row {index} has offset {offset} in another generation than the log")
        if row.ts_ns >= ts_ns + SECOND_NS:
            reason = f"row {index} has the time {row.ts_ns}, but offset {offset} was published earlier, at {ts_ns}"
            yield Fault(FaultKind.TIME, reason)

    def rest(self) -> Iterator[Fault]:
        """
        The faults of rows that the log does not have.
        """
        for number, (row, seen) in enumerate(zip(self._ledger.rows, self._seen, strict=True)):
            there = row.end - max(row.kafka, self._ledger.start)
            if (seen == 0) if self._ledger.batched else (seen < there):
                reason = f"row {number} has offsets {row.kafka} to {row.end - 1}, but the log has {seen} of them"
                yield Fault(FaultKind.COVERAGE, reason)


_NO_LEDGER = "it has messages but no ledger yet; a gateway creates one when it serves the topic"


class Finding(NamedTuple):
    """
    A finding. If it is no fault, a gateway will repair it.
    """

    place: str
    kind: str
    reason: str
    is_fault: bool = True


@dataclass(slots=True)
class Tally:
    bytes_in_all: int = 0
    bytes: int = 0
    files: int = 0
    partitions: int = 0
    rows: int = 0


class Verification:
    """
    The verification of these topics. A step that has found nothing yields `None`.
    """

    def __init__(self, cluster: ReadOnlyCluster, topics: list[StoredTopic]) -> None:
        self.tally = Tally()
        self._cluster = cluster
        self._places = [(stored, index) for stored in topics for index in range(stored.file.partition_count)]

    async def steps(self) -> AsyncIterator[Finding | None]:
        partitions_files = [self._cluster.partition_files(*place) for place in self._places]
        for partition_files in partitions_files:
            await partition_files.refresh()
            self.tally.bytes_in_all += sum(partition_files.sizes)
            self.tally.files += len(partition_files.sizes)
        for (stored, index), partition_files in zip(self._places, partitions_files, strict=True):
            self.tally.partitions += 1
            try:
                async for found in self._partition(stored, index, partition_files):
                    yield found
            except Malformed as error:
                yield Finding(f"{stored.name}-{index}", "coverage", f"the rest of its files cannot be read: {error}")

    async def _partition(
        self, stored: StoredTopic, index: int, partition_files: PartitionFiles
    ) -> AsyncIterator[Finding | None]:
        place, saved = f"{stored.name}-{index}", None
        try:
            saved = await self._cluster.saved_ledger(stored, index)
            if saved and saved.batched != stored.file.format.batched:
                saved = None
                raise UnusableLedger("its rows are of another format")
        except UnusableLedger as error:
            yield Finding(place, "ledger", f"the saved ledger cannot be used: {error}")
        start = await partition_files.start()
        ledger = saved or empty_ledger(partition_files, stored.file.format)
        self.tally.rows += len(ledger.rows)
        if start is not None:
            ledger.drop_before(start)  # what was there before is gone
        for fault in verify(ledger):
            yield Finding(place, fault.kind.value, fault.reason)
        is_saved = saved is not None
        async for found in self._files(place, stored.file.format, partition_files, ledger, is_saved=is_saved):
            yield found

    async def _files(
        self,
        place: str,
        message_format: MessageFormat,
        partition_files: PartitionFiles,
        ledger: Ledger,
        *,
        is_saved: bool,
    ) -> AsyncIterator[Finding | None]:
        check, files, end, at = LedgerCheck(ledger), FilesCheck(), ledger.start, 0
        async for folder, piece in partition_files.messages(None, files.show_damage):
            faults = list(files.show(folder, piece))
            for placed in message_format.walk(piece, folder.shift, end, _skip):
                end = placed.offset + placed.span
                faults += check.show(placed, (folder.unix_time_ns, folder.part))
            for fault in faults:
                yield Finding(place, fault.kind.value, fault.reason)
            self.tally.bytes += piece[-1].end - (at if piece[0].end > at else 0)  # else it begins a file
            at = piece[-1].end
            yield None
        for fault in (*files.rest(), *check.rest()):
            yield Finding(place, fault.kind.value, fault.reason)
        if check.ahead:
            reason = f"offsets {ledger.end} to {end - 1} are in files, but not yet in the saved ledger"
            yield Finding(place, "coverage", reason if is_saved else _NO_LEDGER, is_fault=False)


def _skip(left_out: SkippedMessage) -> None:
    """
    A message that nobody can read has no row.
    """
