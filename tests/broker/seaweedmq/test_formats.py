"""
Every form gives back, through a log, what was written.
"""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.format import MessageFormat, SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage, logged_messages
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, TimestampType, batches, crc_holds, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.wire.types import Buffer
from tests.broker.seaweedmq.log_messages import framed, logged
from tests.records.values import SAMPLE, batch_of, record_lists

BY_APPEND = TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME)

_FORMS = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
_SINGLE = pytest.mark.parametrize("form", [FORMATS["record"], FORMATS["plain"]], ids=["record", "plain"])


def through_a_log(form: MessageFormat, batch: Batch, first: int) -> list[LoggedMessage]:
    """
    The messages of a batch, as they are read from a log file.
    """
    messages = form.encode(batch, batch.header.base_offset, 3)
    return list(logged_messages(framed(logged(messages, first))))


def read(found: list[Buffer]) -> list[Record]:
    """
    The records in batches that consumers could get.
    """
    whole = [read_batch(buffer) for buffer in found]
    assert [len(batch.data) for batch in whole] == [len(buffer) for buffer in found]
    assert all(map(crc_holds, whole))
    return list(chain.from_iterable(map(records, whole)))


@pytest.mark.parametrize("name", ["record", "batch"])
@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1), base=st.integers(0, 1 << 40), stamp=st.none() | st.integers(0, 1 << 42))
def test_records_come_back(name: str, codec: Codec, rows: list[Record], base: int, stamp: int | None) -> None:
    """
    Keys, values, headers, timestamps and offsets, with every codec, at every offset, with CreateTime and LogAppendTime.
    """
    batch = batch_of(rows, codec=codec, base_offset=base, log_append_time_ms=stamp)
    FORMATS[name].check(TopicConfig())
    found = FORMATS[name].decode(through_a_log(FORMATS[name], batch, base))
    assert read(found) == list(records(batch))
    kind = TimestampType.CREATE_TIME if stamp is None else TimestampType.LOG_APPEND_TIME
    assert {read_batch(buffer).header.timestamp_type for buffer in found} == {kind}


@pytest.mark.parametrize("codec", Codec)
@given(
    rows=st.lists(st.tuples(st.none() | st.binary(min_size=1, max_size=12), st.binary(max_size=12)), min_size=1),
    base=st.integers(0, 1 << 40),
)
def test_plain_records_come_back(codec: Codec, rows: list[tuple[bytes | None, bytes]], base: int) -> None:
    """
    Keys and values are kept; the time is that of the message.
    """
    form = FORMATS["plain"]
    batch = batch_of([Record(n, 5, *row) for n, row in enumerate(rows)], codec=codec, base_offset=base)
    form.check(BY_APPEND)
    logged_ = through_a_log(form, batch, base)
    found = form.decode(logged_)
    assert read(found) == [
        Record(base + n, entry.ts_ns // 1_000_000, *row)
        for n, (row, entry) in enumerate(zip(rows, logged_, strict=True))
    ]
    assert {read_batch(buffer).header.timestamp_type for buffer in found} == {TimestampType.LOG_APPEND_TIME}


@_FORMS
def test_messages_stand_where_their_records_do(form: MessageFormat) -> None:
    """
    There is one message for each record, or one for all.
    """
    batch = batch_of([Record(n, 7, b"k", b"v") for n in range(4)], base_offset=100, log_append_time_ms=7)
    found = through_a_log(form, batch, 60)
    placed = list(form.walk(found, 40))
    assert [(each.offset, each.span) for each in placed] == (
        [(100, 4)] if form.batched else [(100 + n, 1) for n in range(4)]
    )
    assert [(each.message_offset, each.ts_ns) for each in placed] == [(entry.offset, entry.ts_ns) for entry in found]
    assert [form.placed(entry, 40) for entry in found] == placed


@_FORMS
def test_what_was_there_before_is_left_out_and_reported(form: MessageFormat) -> None:
    """
    Repeated messages are read once, and those before the requested offset not at all.
    """
    batch = batch_of([Record(n, 7, b"k", b"v") for n in range(3)], base_offset=10, log_append_time_ms=7)
    once = through_a_log(form, batch, 10)
    reported: list[SkippedMessage] = []
    assert [record.offset for record in read(form.decode(once + once, report=reported.append))] == [10, 11, 12]
    assert [left.offset for left in reported] == [entry.offset for entry in once]
    assert all(left.is_repeated for left in reported)
    assert "10" in reported[0].reason
    assert "13" in reported[0].reason
    assert len(list(form.walk(once + once))) == len(once)
    assert form.decode(once, end=13) == []
    assert read(form.decode(once + once)) == read(form.decode(once))


@_FORMS
def test_holes_stay(form: MessageFormat) -> None:
    """
    If offsets are missing, one batch ends and another begins.
    """
    parts = [batch_of([Record(0, 7, b"k", b"v")], base_offset=base, log_append_time_ms=7) for base in (5, 6, 9)]
    found = [entry for part in parts for entry in through_a_log(form, part, part.header.base_offset)]
    decoded = form.decode(found)
    assert [record.offset for record in read(decoded)] == [5, 6, 9]
    assert read_batch(decoded[-1]).header.base_offset == 9


@_SINGLE
def test_batches_have_a_bounded_size(form: MessageFormat) -> None:
    """
    A long run becomes several batches.
    """
    rows = [Record(n, 7, None, b"v" * 10_000) for n in range(50)]
    found = form.decode(through_a_log(form, batch_of(rows, log_append_time_ms=7), 0))
    assert len(found) > 5
    assert max(map(len, found)) < 80_000
    assert [record.offset for record in read(found)] == list(range(50))


@_FORMS
def test_nothing_gives_nothing(form: MessageFormat) -> None:
    """
    Without messages there are no batches.
    """
    assert form.decode([]) == []
    assert list(form.walk([])) == []


def test_forms_are_named_as_the_config_names_them() -> None:
    """
    The values of seaweedmq.format.
    """
    assert {name: form.name for name, form in FORMATS.items()} == {
        "record": "record",
        "plain": "plain",
        "batch": "batch",
    }


def test_a_batch_is_read_by_its_parts() -> None:
    """
    The result of decode fits a fetch response: batches one after the other.
    """
    found = FORMATS["record"].decode(through_a_log(FORMATS["record"], batch_of(SAMPLE), 0))
    assert len(list(batches(b"".join(found)))) == len(found)
