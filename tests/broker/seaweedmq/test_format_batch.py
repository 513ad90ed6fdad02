"""
The form batch.
"""

import pytest

from kgateway.broker.seaweedmq.formats.batch import BatchFormat
from kgateway.broker.seaweedmq.formats.format import SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.records.compression import Codec
from kgateway.wire.errors import Malformed
from tests.broker.seaweedmq.log_messages import NOW_NS, logged
from tests.records.values import JAVA_BATCHES, SAMPLE, batch_of, with_header

FORM = BatchFormat()


def entry(value: bytes, offset: int = 0) -> LoggedMessage:
    """
    A message with this value.
    """
    return LoggedMessage(offset, NOW_NS, b"", value)


@pytest.mark.parametrize("codec", Codec)
def test_batches_are_kept_byte_for_byte(codec: Codec) -> None:
    """
    Nothing that a producer or the broker wrote is changed, the leader epoch included; the key is empty.
    """
    batch = batch_of(
        SAMPLE, codec=codec, base_offset=77, leader_epoch=5, producer_id=9, producer_epoch=1, base_sequence=3
    )
    (message,) = FORM.encode(batch, 77, 0)
    assert message.key == b""
    assert FORM.decode(logged([message])) == [batch.data]
    assert FORM.decode([entry(JAVA_BATCHES[codec])]) == [JAVA_BATCHES[codec]]


def test_a_batch_that_begins_before_the_end_came_before() -> None:
    """
    It may also end after it.
    """
    four = batch_of(SAMPLE, base_offset=10).data.tobytes()
    late = batch_of(SAMPLE, base_offset=12).data.tobytes()
    assert FORM.decode([entry(four), entry(late, 1)]) == [four]


WHOLE = batch_of(SAMPLE, base_offset=10).data.tobytes()


@pytest.mark.parametrize(
    ("value", "reason", "is_foreign"),
    [
        (b"", "0 bytes are left, but a header has 61", True),
        (b"hello", "5 bytes are left", True),
        (bytes(200), "magic 0, not 2", True),
        (WHOLE + WHOLE, f"{len(WHOLE)} bytes are left over", True),
        (WHOLE[:-1], "declared", True),
        (WHOLE + b"x", "1 bytes are left over", True),
        (WHOLE[:-1] + b"\xff", "the CRC is not that of the bytes", False),
        (
            with_header(batch_of(SAMPLE), base_offset=1).data.tobytes()[:16] + b"\1" + WHOLE[17:],
            "magic 1, not 2",
            False,
        ),
    ],
)
def test_what_is_no_batch_is_reported(value: bytes, reason: str, is_foreign: bool) -> None:
    """
    The report has the offset of the message, what is wrong, and whether it never was a batch; the others are read.
    """
    reported: list[SkippedMessage] = []
    assert FORM.decode([entry(value, 41), entry(WHOLE, 42)], report=reported.append) == [WHOLE]
    assert [(left.offset, left.is_repeated, left.is_foreign) for left in reported] == [(41, False, is_foreign)]
    assert reason in reported[0].reason


@pytest.mark.parametrize("place", [*range(8, 12), *range(16, len(WHOLE))])
def test_a_damaged_byte_makes_a_batch_of_ours_none_of_others(place: int) -> None:
    """
    The batch had offsets, so it is not skipped, whichever byte is damaged.
    """
    damaged = WHOLE[:place] + bytes([WHOLE[place] ^ 0x5A]) + WHOLE[place + 1 :]
    reported: list[SkippedMessage] = []
    assert FORM.decode([entry(damaged)], report=reported.append) == []
    assert [left.is_foreign for left in reported] == [False]


def test_what_is_no_batch_stops_who_asks_for_no_report() -> None:
    """
    Nothing is skipped silently.
    """
    with pytest.raises(Malformed, match="byte 41: the value is not a Kafka record batch"):
        FORM.decode([entry(b"hello", 41)])
    with pytest.raises(Malformed):
        FORM.placed(entry(b"hello", 41))


def test_a_message_tells_of_its_batch() -> None:
    """
    It has the offsets, the largest timestamp, and the header if the producer is idempotent.
    """
    placed = FORM.placed(entry(WHOLE, 3))
    assert placed
    assert (placed.offset, placed.span, placed.message_offset, placed.max_timestamp) == (10, 4, 3, 5_000)
    assert placed.batch is None
    numbered = batch_of(SAMPLE, base_offset=10, producer_id=0, producer_epoch=1, base_sequence=3)
    placed = FORM.placed(entry(numbered.data.tobytes()))
    assert placed
    assert placed.batch == numbered.header
