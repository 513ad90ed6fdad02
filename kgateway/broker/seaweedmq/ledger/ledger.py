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

Rows are added at the end, and dropped at the front. So that a time is found without looking at every row, the largest
timestamp of each block of rows is kept, too.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from kgateway.broker.seaweedmq.formats.format import PlacedMessage
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
    __slots__ = ("_tops", "columns", "kafka", "maxima", "messages", "spans", "times")

    def __init__(self) -> None:
        self.columns: Columns = tuple(array(letter) for letter in COLUMN_TYPES)
        self.kafka, self.messages, self.times, self.maxima, self.spans = self.columns
        self._tops: list[int] = []  # the largest timestamp in each block

    def __len__(self) -> int:
        return len(self.kafka)

    def __iter__(self) -> Iterator[Row]:
        return map(Row._make, zip(*self.columns, strict=True))

    def at(self, place: int) -> Row:
        """
        The row at a place in the columns; -1 is the last.
        """
        return Row(self.kafka[place], self.messages[place], self.times[place], self.maxima[place], self.spans[place])

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
        block = (len(self) - 1) // _BLOCK
        if block == len(self._tops):
            self._tops.append(max_timestamp)
        elif max_timestamp > self._tops[block]:
            self._tops[block] = max_timestamp

    def extend(self, columns: Columns) -> None:
        block = len(self) // _BLOCK
        for column, added in zip(self.columns, columns, strict=True):
            column.extend(added)
        self._find_tops(block)

    def drop(self, count: int) -> None:
        if count:
            for column in self.columns:
                del column[:count]
            self._find_tops(0)

    def first_from(self, timestamp: int) -> int | None:
        """
        The place of the first row in which a record has this timestamp or a later one.
        """
        for block, top in enumerate(self._tops):
            if top >= timestamp:
                return next(place for place in self._places(block) if self.maxima[place] >= timestamp)
        return None

    def highest(self) -> int | None:
        """
        The place of the first of the rows with the largest timestamp.
        """
        return self.first_from(max(self._tops)) if self._tops else None

    def correct(self, row: Row, max_timestamp: int) -> None:
        """
        Set the largest timestamp of this row, unless it is gone, or has grown.
        """
        place = bisect_left(self.kafka, row.kafka)
        if place < len(self) and self.at(place) == row:
            self.maxima[place] = max_timestamp
            self._tops[place // _BLOCK] = self._top(place // _BLOCK)

    def _find_tops(self, block: int) -> None:
        """
        Compute the largest timestamps of this block and those after it.
        """
        self._tops[block:] = map(self._top, range(block, -(-len(self) // _BLOCK)))

    def _top(self, block: int) -> int:
        return max(self.maxima[block * _BLOCK : (block + 1) * _BLOCK])

    def _places(self, block: int) -> range:
        return range(block * _BLOCK, min((block + 1) * _BLOCK, len(self)))


EARLIEST, LATEST = -2, -1  # as in ListOffsets

RUN_MESSAGES = 1000


class Section(NamedTuple):
    """
    A partition of one generation, and the place of its first row.
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

    def __init__(self, batched: bool, unix_time_ns: int, part: RingRange) -> None:
        self.batched = batched  # whether a message is a batch
        self.start = 0  # Kafka's offset before which nothing counts
        self.rows = Rows()
        self.sections = [Section(0, unix_time_ns, part)]

    @property
    def end(self) -> int:
        return self.rows.kafka[-1] + self.rows.spans[-1] if self.rows else self.start

    def begin(self, unix_time_ns: int, part: RingRange) -> None:
        """
        Begin the section of a generation.
        """
        section = Section(len(self.rows), unix_time_ns, part)
        last = self.sections[-1]
        if last[1:] == section[1:]:
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
                and self.sections[-1].first_row < len(rows)
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

    def extend(self, placed: Iterable[PlacedMessage]) -> None:
        """
        Add messages of the log that follow the last row.
        """
        for offset, span, message_offset, ts_ns, max_timestamp, _ in placed:
            self.append(offset, message_offset, ts_ns, span, max_timestamp)

    def at(self, offset: int) -> Mapping | None:
        """
        The mapping of an offset, or of the first one after it that is in a row; `None` if there is none. EARLIEST
        and LATEST are the first and the last offset.
        """
        if offset == LATEST:
            offset = self.end - 1
        offset = max(offset, self.start)
        place = self._place_from(offset)
        if place == len(self.rows):
            return None
        row, section = self.rows.at(place), self.section_of(place)
        offset = max(offset, row.kafka)
        if self.batched:
            return Mapping(offset, row.kafka, row.message_offset, row.ts_ns, section)
        return Mapping(offset, offset, row.message_offset + offset - row.kafka, row.ts_ns, section)

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
        count = self._place_from(offset)
        self.rows.drop(count)
        places = [max(section.first_row - count, 0) for section in self.sections]
        ended = bisect_right(places, 0) - 1
        self.sections = [each._replace(first_row=place) for place, each in zip(places, self.sections, strict=True)]
        del self.sections[:ended]

    def section_of(self, place: int) -> Section:
        """
        The section of the row at this place.
        """
        return self.sections[bisect_right(self.sections, place, key=lambda section: section.first_row) - 1]

    def _place_from(self, offset: int) -> int:
        """
        The place of the first row that has the offset, or a later one.
        """
        rows = self.rows
        place = max(bisect_right(rows.kafka, offset) - 1, 0)
        return place + (place < len(rows) and rows.kafka[place] + rows.spans[place] <= offset)
