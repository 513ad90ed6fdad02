"""
Holds a ledger against the log files of its partition, message by message.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from kgateway.broker.seaweedmq.forms.form import Placed
from kgateway.broker.seaweedmq.layout import SECOND_NS, Range
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_faults import Fault, Kind

Generation = tuple[int, Range]


class LedgerCheck:
    """
    Of one ledger. It is shown all messages of the log, in their order.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ahead = 0  # how many of Kafka's offsets the log has behind the last row
        self._ledger = ledger
        self._seen = array("i", bytes(4 * len(ledger.rows)))  # of each row, how many of its offsets the log has

    def show(self, placed: Placed, generation: Generation) -> Iterator[Fault]:
        """
        What is wrong with the row of a message.
        """
        ledger, rows = self._ledger, self._ledger.rows
        offset, span, message, ts_ns, *_ = placed
        if offset + span <= ledger.start:
            return
        if offset >= ledger.end:
            self.ahead += span
            return
        place = bisect_right(rows.kafka, offset) - 1
        if place < 0 or offset >= rows.kafka[place] + rows.spans[place]:
            yield Fault(Kind.COVERAGE, f"offset {offset} is in message {message} of the log, and in no row")
            return
        self._seen[place] += span
        row = rows.at(place)
        number, told = rows.first + place, row.message if ledger.batched else row.message + offset - row.kafka
        if told != message:
            reason = f"row {number} has offset {offset} in message {told}, and the log in message {message}"
            yield Fault(Kind.SEQUENCE, reason)
        if ledger.section_of(number)[1:] != generation:
            yield Fault(Kind.SEQUENCE, f"row {number} has offset {offset} in another generation than the log")
        if row.ts_ns >= ts_ns + SECOND_NS:
            reason = f"row {number} has the time {row.ts_ns}, and offset {offset} was published at {ts_ns}, before it"
            yield Fault(Kind.TIME, reason)

    def rest(self) -> Iterator[Fault]:
        """
        What rows tell of, and the log has not.
        """
        for (number, row), seen in zip(self._ledger.rows.numbered(), self._seen, strict=True):
            there = row.end - max(row.kafka, self._ledger.start)
            if (seen == 0) if self._ledger.batched else (seen < there):
                reason = f"row {number} has offsets {row.kafka} to {row.end - 1}, and the log has {seen} of them"
                yield Fault(Kind.COVERAGE, reason)
