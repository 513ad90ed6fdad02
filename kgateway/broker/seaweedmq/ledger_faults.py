"""
What can be wrong with a ledger, each fault named with its numbers.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_rows import Row


class Kind(Enum):
    """
    What does not hold.
    """

    SEQUENCE = "sequence"
    TIME = "time"
    COVERAGE = "coverage"


class Fault(NamedTuple):
    """
    One thing that is wrong.
    """

    kind: Kind
    reason: str


def verify(ledger: Ledger, end: int | None = None) -> Iterator[Fault]:
    """
    Look whether the rows follow one another, and whether nothing is missing between the start of the log and its end.
    """
    covered, last = ledger.start, None
    for number, row in ledger.rows.numbered():
        if row.kafka > covered:
            yield _missing("Kafka's offsets", covered, row.kafka, number)
        if last:
            yield from _follows(number, last, row)
            if ledger.section_of(number).first_row < number:
                yield from _messages(number, last.message + (1 if ledger.batched else last.span), row.message)
        covered, last = row.end, row
    if end is not None and covered < end:
        yield _missing("Kafka's offsets", covered, end, ledger.rows.end)
    if end is not None and covered > end:
        yield Fault(Kind.COVERAGE, f"the rows go to Kafka's offset {covered - 1}, and the log to {end - 1}")


def _follows(number: int, last: Row, row: Row) -> Iterator[Fault]:
    if row.kafka < last.end:
        reason = f"row {number} begins with Kafka's offset {row.kafka}, and row {number - 1} goes to {last.end - 1}"
        yield Fault(Kind.SEQUENCE, reason)
    if row.ts_ns < last.ts_ns:
        reason = f"row {number} has the time {row.ts_ns}, and row {number - 1} the later {last.ts_ns}"
        yield Fault(Kind.TIME, reason)


def _messages(number: int, expected: int, message: int) -> Iterator[Fault]:
    if message < expected:
        reason = f"row {number} begins with message {message}, and row {number - 1} goes to {expected - 1}"
        yield Fault(Kind.SEQUENCE, reason)
    if message > expected:
        yield _missing("messages", expected, message, number)


def _missing(what: str, first: int, stop: int, number: int) -> Fault:
    return Fault(Kind.COVERAGE, f"{what} {first} to {stop - 1} are in no row before row {number}")
