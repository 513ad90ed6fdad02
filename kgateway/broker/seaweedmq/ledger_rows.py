"""
The rows of a ledger, each 36 bytes, in columns:

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
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = 256
COLUMN_TYPES = "qqqqi"


class Row(NamedTuple):
    """
    One line of a ledger.
    """

    kafka: int
    message: int
    ts_ns: int
    max_timestamp: int
    span: int

    @property
    def end(self) -> int:
        """
        Kafka's offset behind it.
        """
        return self.kafka + self.span


Columns = tuple["array[int]", ...]


class Rows:
    """
    Rows by their numbers.
    """

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
        """
        All rows, with their numbers.
        """
        return enumerate(map(Row._make, zip(*self.columns, strict=True)), self.first)

    def append(self, kafka: int, message: int, ts_ns: int, max_timestamp: int, span: int) -> None:
        """
        Add a row.
        """
        self.kafka.append(kafka)
        self.messages.append(message)
        self.times.append(ts_ns)
        self.maxima.append(max_timestamp)
        self.spans.append(span)
        self._count_in(max_timestamp)

    def lengthen(self, span: int, max_timestamp: int) -> None:
        """
        Let the last row span so many more.
        """
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
        """
        The columns of the rows with these numbers.
        """
        return tuple(column[first - self.first : stop - self.first] for column in self.columns)

    def extend(self, columns: Columns) -> None:
        """
        Add rows, as they were taken.
        """
        place = len(self)
        for column, added in zip(self.columns, columns, strict=True):
            column.extend(added)
        self._find_tops(place)

    def drop(self, first: int) -> None:
        """
        Let go of the rows before this number.
        """
        for column in self.columns:
            del column[: first - self.first]
        del self._tops[: first // _BLOCK - self.first // _BLOCK]
        self.first = first
        self._tops[:1] = [max(self.maxima[: self._place(1)])] if self.kafka else []

    def cut(self, end: int) -> None:
        """
        Let go of the rows from this number on.
        """
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
        The place of the first of the rows that have the largest timestamp.
        """
        return self.first_from(max(self._tops)) if self._tops else None

    def correct(self, place: int, max_timestamp: int) -> None:
        """
        The largest timestamp of a row is another than was said.
        """
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
        Look which are the largest in the block that has this place, and in those behind it.
        """
        del self._tops[(self.first + place) // _BLOCK - self.first // _BLOCK :]
        while (start := self._place(len(self._tops))) < len(self):
            self._tops.append(max(self.maxima[start : self._place(len(self._tops) + 1)]))
