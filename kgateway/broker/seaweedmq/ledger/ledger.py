"""
The ledger of a partition: which message of SeaweedMQ holds which of Kafka's offsets, and when it was published.

It is a table of rows. If messages are batches, a row is a message. If they are records, a row is a run of messages, in
which both offsets count on together: a run takes messages until it has many, or has gone on for a second. Log files are
named by seconds, so a row leads to its file, or to the one before.

All that is in one folder is a section, with the range of the ring that the cluster gave it; SeaweedMQ's offsets count
on only within one.

A row has 36 bytes, in columns:

    bytes
        8  Kafka's offset of the first record
        8  SeaweedMQ's offset of the first message
        8  time of that message, in nanoseconds
        8  the largest timestamp of the records, in milliseconds
        4  how many of Kafka's offsets it spans

Rows are added and cut off at the end, and dropped at the front; a row keeps its number. So that a time is found without
looking at every row, the largest timestamp of each block of them is kept, too.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from kgateway.broker.seaweedmq.formats.format import MessageFormat, Report, raise_unless_repeated
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange
from kgateway.records.batch import NO_TIMESTAMP

_BLOCK = 256
COLUMN_TYPES = "qqqqi"


class Row(NamedTuple):
    kafka: int
    message_offset: int
    ts_ns: int
    max_timestamp: int
    span: int

    @property
    def end(self) -> int:
        return self.kafka + self.span


Columns = tuple["array[int]", ...]


class Rows:
    __slots__ = ("_tops", "columns", "first", "kafka", "maxima", "messages", "spans", "times")

    def __init__(self, first: int = 0) -> None:
        self.first = first  # the number of the first row that is there
        self.columns: Columns = tuple(array(letter) for letter in COLUMN_TYPES)
        self.kafka, self.messages, self.times, self.maxima, self.spans = self.columns
        self._tops: list[int] = []  # the largest timestamp in each block of row numbers

    def __len__(self) -> int:
        return len(self.kafka)

    @property
    def end(self) -> int:
        """
        The number that the next row gets.
        """
        return self.first + len(self.kafka)

    def at(self, place: int) -> Row:
        """
        The row at a place in the columns; -1 is the last.
        """
        return Row(self.kafka[place], self.messages[place], self.times[place], self.maxima[place], self.spans[place])

    def numbered(self) -> Iterator[tuple[int, Row]]:
        return enumerate(map(Row._make, zip(*self.columns, strict=True)), self.first)

    def append(self, kafka: int, message_offset: int, ts_ns: int, max_timestamp: int, span: int) -> None:
        self.kafka.append(kafka)
        self.messages.append(message_offset)
        self.times.append(ts_ns)
        self.maxima.append(max_timestamp)
        self.spans.append(span)
        self._count_in(max_timestamp)

    def lengthen(self, span: int, max_timestamp: int) -> None:
        self.spans[-1] += span
        if max_timestamp > self.maxima[-1]:
            self.maxima[-1] = max_timestamp
            self._count_in(max_timestamp)

    def _count_in(self, max_timestamp: int) -> None:
        block = (self.end - 1) // _BLOCK - self.first // _BLOCK
        if block == len(self._tops):
            self._tops.append(max_timestamp)
        elif max_timestamp > self._tops[block]:
            self._tops[block] = max_timestamp

    def take(self, first: int, stop: int) -> Columns:
        return tuple(column[first - self.first : stop - self.first] for column in self.columns)

    def extend(self, columns: Columns) -> None:
        place = len(self)
        for column, added in zip(self.columns, columns, strict=True):
            column.extend(added)
        self._find_tops(place)

    def drop(self, first: int) -> None:
        for column in self.columns:
            del column[: first - self.first]
        del self._tops[: first // _BLOCK - self.first // _BLOCK]
        self.first = first
        self._tops[:1] = [max(self.maxima[: self._place(1)])] if self.kafka else []

    def cut(self, end: int) -> None:
        for column in self.columns:
            del column[max(end - self.first, 0) :]
        self._find_tops(len(self))

    def first_from(self, timestamp: int) -> int | None:
        """
        The place of the first row in which a record has this timestamp or a later one.
        """
        for block, top in enumerate(self._tops):
            if top >= timestamp:
                places = range(self._place(block), self._place(block + 1))
                return next(place for place in places if self.maxima[place] >= timestamp)
        return None

    def highest(self) -> int | None:
        """
        The place of the first of the rows with the largest timestamp.
        """
        return self.first_from(max(self._tops)) if self._tops else None

    def correct(self, place: int, max_timestamp: int) -> None:
        self.maxima[place] = max_timestamp
        block = (self.first + place) // _BLOCK - self.first // _BLOCK
        self._tops[block] = max(self.maxima[self._place(block) : self._place(block + 1)])

    def _place(self, block: int) -> int:
        """
        Where in the columns a block begins.
        """
        return min(max(block * _BLOCK - self.first % _BLOCK, 0), len(self))

    def _find_tops(self, place: int) -> None:
        """
        Compute the largest timestamps of the block that has this place, and of those after it.
        """
        del self._tops[(self.first + place) // _BLOCK - self.first // _BLOCK :]
        while (start := self._place(len(self._tops))) < len(self):
            self._tops.append(max(self.maxima[start : self._place(len(self._tops) + 1)]))


EARLIEST, LATEST = -2, -1  # as in ListOffsets

RUN_MESSAGES = 1000


class Section(NamedTuple):
    """
    A partition of one generation, and the number of its first row.
    """

    first_row: int
    unix_time_ns: int
    part: RingRange


class Mapping(NamedTuple):
    """
    The place of one of Kafka's offsets in the log.
    """

    offset: int
    batch_offset: int  # the first one in its message
    message_offset: int
    ts_ns: int  # the message was not published before
    section: Section


class Ledger:
    __slots__ = ("batched", "rows", "sections", "start")

    def __init__(self, batched: bool, unix_time_ns: int, part: RingRange, first_row: int = 0) -> None:
        self.batched = batched  # whether a message is a batch
        self.start = 0  # Kafka's offset before which nothing counts
        self.rows = Rows(first_row)
        self.sections = [Section(first_row, unix_time_ns, part)]

    @property
    def end(self) -> int:
        return self.rows.kafka[-1] + self.rows.spans[-1] if self.rows else self.start

    @property
    def first_unfinished(self) -> int:
        """
        The number of the first row that may still change.
        """
        return self.rows.end if self.batched or not self.rows else self.rows.end - 1

    def begin(self, unix_time_ns: int, part: RingRange) -> None:
        """
        Begin the section of a generation.
        """
        section = Section(self.rows.end, unix_time_ns, part)
        last = self.sections[-1]
        if (last.unix_time_ns, last.part) == (unix_time_ns, part):
            return
        if last.first_row == section.first_row:
            self.sections.pop()
        self.sections.append(section)

    def append(
        self, offset: int, message_offset: int, ts_ns: int, span: int = 1, max_timestamp: int = NO_TIMESTAMP
    ) -> None:
        """
        Add a message that is a batch, or as many that are records.
        """
        rows = self.rows
        if rows:
            last = rows.spans[-1]
            end = rows.kafka[-1] + last
            if (
                offset == end
                and not self.batched
                and last < RUN_MESSAGES
                and message_offset == rows.messages[-1] + last
                and ts_ns - rows.times[-1] < SECOND_NS
                and self.sections[-1].first_row < rows.end
            ):
                rows.lengthen(span, max_timestamp)
                return
            if offset < end:
                raise ValueError(f"Kafka's offset {offset} follows {end - 1}")
        rows.append(offset, message_offset, max(ts_ns, rows.times[-1]) if rows else ts_ns, max_timestamp, span)

    def append_batches(
        self,
        offsets: Sequence[int],
        message_offsets: Sequence[int],
        times: Sequence[int],
        spans: Iterable[int],
        max_timestamps: Sequence[int],
    ) -> None:
        latest = max(self.rows.times[-1], times[0]) if self.rows else times[0]
        growing = accumulate(times[1:], max, initial=latest)
        self.rows.extend(tuple(map(array, COLUMN_TYPES, (offsets, message_offsets, growing, max_timestamps, spans))))

    def extend(
        self,
        entries: Iterable[LoggedMessage],
        message_format: MessageFormat,
        shift: int = 0,
        report: Report = raise_unless_repeated,
    ) -> None:
        """
        Add the messages that a log has after the last row.
        """
        for placed in message_format.walk(entries, shift, self.end, report):
            self.append(placed.offset, placed.message_offset, placed.ts_ns, placed.span, placed.max_timestamp)

    def at(self, offset: int) -> Mapping | None:
        """
        The mapping of an offset, or of the first one after it that is in a row; `None` if there is none. EARLIEST
        and LATEST are the first and the last offset.
        """
        if offset == LATEST:
            offset = self.end - 1
        offset = max(offset, self.start)
        rows = self.rows
        if not rows or offset >= self.end:
            return None
        place = bisect_right(rows.kafka, offset) - 1
        if place < 0 or offset >= rows.kafka[place] + rows.spans[place]:
            place += 1
            offset = rows.kafka[place]
        return self._mapping(place, offset)

    def of_message(self, message_offset: int, section: Section | None = None) -> Mapping | None:
        """
        The mapping of a message, by its offset in a section, else in the last; `None` if no row has it.
        """
        rows = self.rows
        first, stop = self._places(section or self.sections[-1])
        place = bisect_right(rows.messages, message_offset, first, stop) - 1
        if place < first:
            return None
        ahead = message_offset - rows.messages[place]
        if ahead >= (1 if self.batched else rows.spans[place]):
            return None
        return self._mapping(place, rows.kafka[place] + ahead)

    def from_time(self, timestamp: int) -> Mapping | None:
        """
        The mapping of the row with the first record of this timestamp, in milliseconds, or a later one.
        """
        place = self.rows.first_from(timestamp)
        return None if place is None else self._mapping(place, max(self.rows.kafka[place], self.start))

    def from_publishing(self, ts_ns: int) -> Mapping | None:
        """
        The mapping before which no message was published at this time or later.
        """
        place = max(bisect_right(self.rows.times, ts_ns) - 1, 0)
        return self._mapping(place, max(self.rows.kafka[place], self.start)) if self.rows else None

    def newest_between(self, start: int, stop: int) -> int | None:
        """
        The largest timestamp of the records between two offsets; `None` if rows do not cover all of them.
        """
        if not self.start <= start < stop <= self.end:
            return None
        rows = self.rows
        first = self._place_from(start)
        return max(rows.maxima[first : bisect_left(rows.kafka, stop)], default=NO_TIMESTAMP)

    def drop_before(self, offset: int) -> None:
        self.start = max(self.start, offset)
        rows = self.rows
        rows.drop(rows.first + self._place_from(offset))
        while len(self.sections) > 1 and self.sections[1].first_row <= rows.first:
            del self.sections[0]

    def _place_from(self, offset: int) -> int:
        """
        The place of the first row that has the offset, or a later one.
        """
        rows = self.rows
        place = max(bisect_right(rows.kafka, offset) - 1, 0)
        return place + (place < len(rows) and rows.kafka[place] + rows.spans[place] <= offset)

    def cut(self, end_row: int) -> None:
        self.rows.cut(end_row)
        while len(self.sections) > 1 and self.sections[-1].first_row >= end_row:
            self.sections.pop()

    def section_of(self, row: int) -> Section:
        place = bisect_right(self.sections, row, key=lambda section: section.first_row)
        return self.sections[max(place - 1, 0)]

    def _mapping(self, place: int, offset: int) -> Mapping:
        rows = self.rows
        row, section = rows.at(place), self.section_of(rows.first + place)
        if self.batched:
            return Mapping(offset, row.kafka, row.message_offset, row.ts_ns, section)
        return Mapping(offset, offset, row.message_offset + offset - row.kafka, row.ts_ns, section)

    def _places(self, section: Section) -> tuple[int, int]:
        behind = [other.first_row for other in self.sections if other.first_row > section.first_row]
        first, stop = section.first_row, min([self.rows.end, *behind])
        return max(first - self.rows.first, 0), max(stop - self.rows.first, 0)
