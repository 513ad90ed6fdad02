"""
The ledger of a partition: which message of SeaweedMQ holds which of Kafka's offsets, and when it was published.

It is a table of rows. Where messages are batches, a row is a message. Where they are records, a row is a run of them,
in which both offsets count on together: a run takes messages until it has many, or has gone on for a second. Log files
are named by seconds, so a row leads to its file, or to the one before.

All that is in one folder is a section, with the range of the ring that the cluster gave it; SeaweedMQ's offsets count
on only within one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from kgateway.broker.seaweedmq.forms.form import Form, Report, only_repeated
from kgateway.broker.seaweedmq.layout import SECOND_NS, Range
from kgateway.broker.seaweedmq.ledger_rows import COLUMN_TYPES, Rows
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.records.batch import NO_TIMESTAMP

EARLIEST, LATEST = -2, -1  # as in ListOffsets

RUN_MESSAGES = 1000


class Section(NamedTuple):
    """
    A partition of one generation, and the number of the first row that is of it.
    """

    first_row: int
    unix_time_ns: int
    part: Range


class Mapping(NamedTuple):
    """
    Where one of Kafka's offsets is.
    """

    offset: int
    batch_offset: int  # that its message begins with
    message: int
    ts_ns: int  # before which the message was not published
    section: Section


class Ledger:
    """
    The rows of one partition, and their sections.
    """

    __slots__ = ("batched", "rows", "sections", "start")

    def __init__(self, batched: bool, unix_time_ns: int, part: Range, first_row: int = 0) -> None:
        self.batched = batched  # whether a message is a batch
        self.start = 0  # Kafka's offset before which nothing counts
        self.rows = Rows(first_row)
        self.sections = [Section(first_row, unix_time_ns, part)]

    @property
    def end(self) -> int:
        """
        Kafka's offset behind the last row.
        """
        return self.rows.kafka[-1] + self.rows.spans[-1] if self.rows else self.start

    @property
    def settled(self) -> int:
        """
        The number of the first row that may still change.
        """
        return self.rows.end if self.batched or not self.rows else self.rows.end - 1

    def begin(self, unix_time_ns: int, part: Range) -> None:
        """
        What comes now is of this generation.
        """
        section = Section(self.rows.end, unix_time_ns, part)
        last = self.sections[-1]
        if (last.unix_time_ns, last.part) == (unix_time_ns, part):
            return
        if last.first_row == section.first_row:
            self.sections.pop()
        self.sections.append(section)

    def append(self, offset: int, message: int, ts_ns: int, span: int = 1, max_timestamp: int = NO_TIMESTAMP) -> None:
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
                and message == rows.messages[-1] + last
                and ts_ns - rows.times[-1] < SECOND_NS
                and self.sections[-1].first_row < rows.end
            ):
                rows.lengthen(span, max_timestamp)
                return
            if offset < end:
                raise ValueError(f"Kafka's offset {offset} comes behind {end - 1}")
        rows.append(offset, message, max(ts_ns, rows.times[-1]) if rows else ts_ns, max_timestamp, span)

    def append_batches(
        self,
        offsets: Sequence[int],
        messages: Sequence[int],
        times: Sequence[int],
        spans: Iterable[int],
        max_timestamps: Sequence[int],
    ) -> None:
        """
        Add messages that are batches and follow one another.
        """
        latest = max(self.rows.times[-1], times[0]) if self.rows else times[0]
        growing = accumulate(times[1:], max, initial=latest)
        self.rows.extend(tuple(map(array, COLUMN_TYPES, (offsets, messages, growing, max_timestamps, spans))))

    def extend(self, entries: Iterable[Entry], form: Form, shift: int = 0, report: Report = only_repeated) -> None:
        """
        Add what a log has, and the ledger has not.
        """
        for placed in form.walk(entries, shift, self.end, report):
            self.append(placed.offset, placed.message, placed.ts_ns, placed.span, placed.max_timestamp)

    def at(self, offset: int) -> Mapping | None:
        """
        Where an offset is, or the first one after it that is anywhere; `None` where there is none. EARLIEST and LATEST
        are the first and the last that there are.
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

    def of_message(self, message: int, section: Section | None = None) -> Mapping | None:
        """
        What a message holds, by its offset in a section, else in the last; `None` where the ledger has none of it.
        """
        rows = self.rows
        first, stop = self._places(section or self.sections[-1])
        place = bisect_right(rows.messages, message, first, stop) - 1
        if place < first:
            return None
        ahead = message - rows.messages[place]
        if ahead >= (1 if self.batched else rows.spans[place]):
            return None
        return self._mapping(place, rows.kafka[place] + ahead)

    def from_time(self, timestamp: int) -> Mapping | None:
        """
        Where to look for the first record with this timestamp, in milliseconds, or a later one: it is in the same row.
        """
        place = self.rows.first_from(timestamp)
        return None if place is None else self._mapping(place, max(self.rows.kafka[place], self.start))

    def from_publishing(self, ts_ns: int) -> Mapping | None:
        """
        Where to look for the first message that was published at this time or later: not before this one.
        """
        place = max(bisect_right(self.rows.times, ts_ns) - 1, 0)
        return self._mapping(place, max(self.rows.kafka[place], self.start)) if self.rows else None

    def newest_between(self, start: int, stop: int) -> int | None:
        """
        The largest timestamp of the records from one offset to the other; `None` where it does not know all of them.
        """
        if not self.start <= start < stop <= self.end:
            return None
        rows = self.rows
        first = self._place_from(start)
        return max(rows.maxima[first : bisect_left(rows.kafka, stop)], default=NO_TIMESTAMP)

    def drop_before(self, offset: int) -> None:
        """
        Let nothing before this offset count any more.
        """
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
        """
        Forget the rows from this number on.
        """
        self.rows.cut(end_row)
        while len(self.sections) > 1 and self.sections[-1].first_row >= end_row:
            self.sections.pop()

    def section_of(self, row: int) -> Section:
        """
        The section of a row, by its number.
        """
        place = bisect_right(self.sections, row, key=lambda section: section.first_row)
        return self.sections[max(place - 1, 0)]

    def _mapping(self, place: int, offset: int) -> Mapping:
        rows = self.rows
        row, section = rows.at(place), self.section_of(rows.first + place)
        if self.batched:
            return Mapping(offset, row.kafka, row.message, row.ts_ns, section)
        return Mapping(offset, offset, row.message + offset - row.kafka, row.ts_ns, section)

    def _places(self, section: Section) -> tuple[int, int]:
        """
        The rows of a section, by their places.
        """
        behind = [other.first_row for other in self.sections if other.first_row > section.first_row]
        first, stop = section.first_row, min([self.rows.end, *behind])
        return max(first - self.rows.first, 0), max(stop - self.rows.first, 0)
