"""
The ledger of a partition.
"""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.format import SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import EARLIEST, LATEST, Ledger, Row, Section
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.records.record import Record
from tests.broker.seaweedmq.ledgers import PARTS, Model, models
from tests.broker.seaweedmq.log_messages import NOW_NS, logged
from tests.records.values import batch_of

PART = RingRange(0, 2520)
S = 1_000_000_000


def rows(ledger: Ledger) -> list[Row]:
    return list(ledger.rows)


@given(models(), st.data())
def test_each_offset_is_found(model: Model, data: st.DataObject) -> None:
    """
    Kafka's offset leads to its message, or to the next one.
    """
    ledger = model.ledger
    if data.draw(st.booleans()):
        model.drop_before(data.draw(st.integers(0, ledger.end)))
    there = sorted(model.where)
    for offset in range(ledger.end + 2):
        wanted = next(iter(there[bisect_left(there, offset) :][:1]), None)
        found = ledger.at(offset)
        if wanted is None:
            assert found is None
            continue
        assert found is not None
        generation, base, message, ts_ns, _ = model.where[wanted]
        section = (found.section.unix_time_ns, found.section.part)
        assert (found.offset, found.batch_offset, found.message_offset, *section) == (
            wanted,
            base,
            message,
            generation,
            PARTS[generation],
        )
        assert ts_ns - S < found.ts_ns <= ts_ns


@given(models())
def test_the_ends_are_known(model: Model) -> None:
    """
    Earliest and latest are -2 and -1, as in ListOffsets.
    """
    ledger = model.ledger
    first, last = ledger.at(EARLIEST), ledger.at(LATEST)
    assert (first and first.offset) == min(model.where, default=None)
    assert (last and last.offset) == max(model.where, default=None)
    assert ledger.end == max(model.where, default=-1) + 1


@given(models(), st.integers(-2, 52), st.data())
def test_a_timestamp_leads_to_its_row(model: Model, timestamp: int, data: st.DataObject) -> None:
    """
    That row has the first record with this timestamp or a later one.
    """
    ledger = model.ledger
    if data.draw(st.booleans()):
        ledger.drop_before(data.draw(st.integers(0, ledger.end)))
    fitting = [place for place, row in enumerate(ledger.rows) if row.max_timestamp >= timestamp]
    assert ledger.rows.first_from(timestamp) == (fitting[0] if fitting else None)


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 2001))
def test_timestamps_are_found_among_many_rows(count: int, dropped: int, timestamp: int) -> None:
    """
    Rows may be dropped at the front, and added again.
    """
    ledger = Ledger(True, 0, PART)
    for number in range(count):
        ledger.append(number, number, number, 1, (number * 7) % 2000)
    ledger.drop_before(min(dropped, count))
    ledger.append(ledger.end, count, count, 1, 1000)
    wanted = next((place for place, row in enumerate(ledger.rows) if row.max_timestamp >= timestamp), None)
    assert ledger.rows.first_from(timestamp) == wanted


@given(models(), st.integers(0, 60), st.integers(0, 60))
def test_the_newest_of_some_records_is_known(model: Model, start: int, stop: int) -> None:
    """
    It is no older than any of them, and newer than all outside their rows; it is unknown unless rows cover all of them.
    """
    ledger = model.ledger
    found = ledger.newest_between(start, stop)
    if not ledger.start <= start < stop <= ledger.end:
        assert found is None
        return
    touched = [row.max_timestamp for row in rows(ledger) if row.kafka < stop and row.end > start]
    assert found == max(touched, default=NO_TIMESTAMP)


def test_records_that_follow_one_another_are_one_row() -> None:
    """
    A row ends after a thousand records, after a second, or if an offset is missing.
    """
    ledger = Ledger(False, 0, PART)
    for number in range(1500):
        ledger.append(number, number + 5, number, max_timestamp=number)
    assert rows(ledger) == [Row(0, 5, 0, 999, 1000), Row(1000, 1005, 1000, 1499, 500)]
    ledger.append(1500, 1505, 1000 + S)
    ledger.append(1501, 1507, 1001 + S)
    ledger.append(1503, 1508, 1002 + S)
    ledger.begin(9, PARTS[1])
    ledger.append(1504, 1509, 1003 + S)
    assert [row.kafka for row in rows(ledger)[2:]] == [1500, 1501, 1503, 1504]


def test_each_batch_is_a_row() -> None:
    """
    A message that is a batch takes as many of Kafka's offsets as it has records.
    """
    ledger = Ledger(True, 0, PART)
    ledger.append(0, 0, 1, 10, 5)
    ledger.append(10, 1, 2, 3, 4)
    assert rows(ledger) == [Row(0, 0, 1, 5, 10), Row(10, 1, 2, 4, 3)]


@pytest.mark.parametrize("batched", [True, False])
def test_an_offset_cannot_come_again(batched: bool) -> None:
    """
    Appended offsets begin at the end.
    """
    ledger = Ledger(batched, 0, PART)
    ledger.append(5, 0, 1, 2)
    with pytest.raises(ValueError, match="offset 6 follows 6"):
        ledger.append(6, 1, 2)


def test_a_ledger_from_which_all_was_dropped_goes_on() -> None:
    """
    It continues at the offset where it ended.
    """
    ledger = Ledger(True, 0, PART)
    ledger.append(0, 0, 1, 10)
    ledger.drop_before(10)
    assert (ledger.start, ledger.end, len(ledger.rows)) == (10, 10, 0)
    assert ledger.at(0) is None
    ledger.append(10, 1, 2)
    assert rows(ledger) == [Row(10, 1, 2, NO_TIMESTAMP, 1)]
    assert ledger.start == 10


def test_sections_go_with_their_rows() -> None:
    """
    Sections are dropped with their last row, and the others have their rows as before.
    """
    ledger = Ledger(True, 1, PARTS[0])
    for generation in (1, 2, 3):
        ledger.begin(generation, PARTS[0])
        for _ in range(2):
            ledger.append(ledger.end, 0, 1, 10)
    ledger.drop_before(10)
    assert ledger.sections == [Section(0, 1, PARTS[0]), Section(1, 2, PARTS[0]), Section(3, 3, PARTS[0])]
    ledger.drop_before(30)
    assert ledger.sections == [Section(0, 2, PARTS[0]), Section(1, 3, PARTS[0])]
    assert [ledger.section_of(place).unix_time_ns for place in range(3)] == [2, 3, 3]
    ledger.drop_before(60)
    assert (ledger.sections, len(ledger.rows)) == ([Section(0, 3, PARTS[0])], 0)


def test_what_is_dropped_does_not_come_back() -> None:
    """
    The start never decreases.
    """
    ledger = Ledger(True, 0, PART)
    ledger.append(0, 0, 1, 10)
    ledger.drop_before(5)
    ledger.drop_before(3)
    assert ledger.start == 5
    found = ledger.at(EARLIEST)
    assert found
    assert (found.offset, found.batch_offset) == (5, 0)


def test_a_generation_that_goes_on_is_no_new_section() -> None:
    """
    A generation without messages has no section.
    """
    ledger = Ledger(True, 1, PARTS[0])
    ledger.begin(1, PARTS[0])
    ledger.append(0, 0, 1)
    ledger.begin(1, PARTS[0])
    ledger.append(1, 1, 2)
    ledger.begin(2, PARTS[1])
    ledger.begin(3, PARTS[2])
    assert ledger.sections == [Section(0, 1, PARTS[0]), Section(2, 3, PARTS[2])]


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_made_again_from_the_log(name: str) -> None:
    """
    In every form the rebuilt ledger equals the one that was kept during publishing; repeated messages count once.
    """
    form = FORMATS[name]
    kept, again = (Ledger(form.batched, 1, PART) for _ in range(2))
    log: list[LoggedMessage] = []
    for base, size in ((0, 3), (3, 1), (4, 5)):
        batch = batch_of(
            [Record(n, 90 + n, b"k", b"v") for n in range(size)], base_offset=base, log_append_time_ms=90 + base
        )
        message = len(log)
        found = logged(form.encode(batch, base, 0), message, NOW_NS + base)
        stamp = NOW_NS // 1_000_000 if name == "plain" else 90 + base
        kept.append(base, message, found[0].ts_ns, size, stamp)
        log += found
    reported: list[SkippedMessage] = []
    again.extend(form.walk([*log, *log[-1:]], report=reported.append))
    assert rows(again) == rows(kept)
    assert [left.offset for left in reported] == [log[-1].offset]


def test_it_takes_up_where_it_ended() -> None:
    """
    Messages that the ledger has already are skipped.
    """
    form = FORMATS["plain"]
    batch = batch_of([Record(n, 5, b"k", b"v") for n in range(6)])
    log = logged(form.encode(batch, 0, 0))
    ledger = Ledger(False, 1, PART)
    for found in (log[:4], log):
        ledger.extend(form.walk(found, end=ledger.end))
    assert (ledger.end, len(ledger.rows)) == (6, 1)
    shifted = Ledger(False, 1, PART)
    shifted.extend(form.walk(log, shift=100))
    assert [row.kafka for row in rows(shifted)] == [100]


def test_a_row_takes_36_bytes() -> None:
    """
    It has four columns of 64 bits, and one of 32.
    """
    ledger = Ledger(True, 1, PART)
    assert sum(column.itemsize for column in ledger.rows.columns) == 36
