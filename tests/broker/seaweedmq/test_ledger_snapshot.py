"""
A ledger is saved in one file.
"""

from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger, Row, Section
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot, UnusableLedger, decode, encode, saved_bytes
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid
from tests.broker.seaweedmq.ledgers import Model, models

OWNER = PartitionId(Uuid(range(16)), 3)


def saved(batched: bool = True) -> bytes:
    """
    A ledger of two rows in two sections.
    """
    ledger = Ledger(batched, 5, RingRange(0, 630))
    ledger.append(1, 2, 3, 6, 4)
    ledger.begin(6, RingRange(630, 1260))
    ledger.append(7, 0, 9, 10, -1)
    ledger.drop_before(2)
    return encode(Snapshot(ledger, 8), OWNER)


@given(models(), st.integers(0, 1 << 30))
def test_a_ledger_comes_back(model: Model, epoch: int) -> None:
    """
    Rows, sections, the start, the format and the epoch are restored; timestamps are found among them.
    """
    model.drop_before(model.ledger.end // 3)
    ledger, known_epoch = decode(encode(Snapshot(model.ledger, epoch), OWNER), OWNER)
    assert list(ledger.rows) == list(model.ledger.rows)
    assert (ledger.sections, ledger.start, ledger.end) == (
        model.ledger.sections,
        model.ledger.start,
        model.ledger.end,
    )
    assert (ledger.batched, known_epoch) == (model.ledger.batched, epoch)
    assert ledger.rows.highest() == model.ledger.rows.highest()


@given(models(), models())
def test_a_ledger_that_comes_back_goes_on(model: Model, later: Model) -> None:
    """
    Rows are added to it as to the one that was saved.
    """
    again = decode(encode(Snapshot(model.ledger, 0), OWNER), OWNER).ledger
    for ledger in (model.ledger, again):
        end = ledger.end
        ledger.begin(9, RingRange(0, 9))
        for row in later.ledger.rows:
            ledger.append(end + row.kafka, row.message_offset, row.ts_ns, row.span)
    assert list(again.rows) == list(model.ledger.rows)
    assert again.sections == model.ledger.sections


def test_the_bytes_are_as_described() -> None:
    """
    The numbers are little-endian, whatever machine has written them.
    """
    head = pack("<BB", 1, 1) + bytes(range(16)) + pack("<iiqiq", 3, 8, 2, 2, 2)
    sections = pack("<qqii", 0, 5, 0, 630) + pack("<qqii", 1, 6, 630, 1260)
    rows = pack("<8q2i", 1, 7, 2, 0, 3, 9, 4, -1, 6, 10)
    data = head + sections + rows
    assert saved() == data + pack("<I", crc32c(data))
    ledger, epoch = decode(saved(), OWNER)
    assert list(ledger.rows) == [Row(1, 2, 3, 4, 6), Row(7, 0, 9, -1, 10)]
    assert ledger.sections == [Section(0, 5, RingRange(0, 630)), Section(1, 6, RingRange(630, 1260))]
    assert (ledger.start, epoch, ledger.batched) == (2, 8, True)
    assert saved_bytes(ledger) == len(rows)


def test_a_truncated_file_is_not_used() -> None:
    """
    Wherever it ends.
    """
    for size in range(1, len(saved())):
        with pytest.raises(UnusableLedger, match=f"truncated or damaged: the CRC is not that of its {size} bytes"):
            decode(saved()[:size], OWNER)


def test_a_flipped_bit_is_found() -> None:
    """
    Wherever it is.
    """
    for place in range(8 * len(saved())):
        data = bytearray(saved())
        data[place // 8] ^= 1 << place % 8
        with pytest.raises(UnusableLedger):
            decode(bytes(data), OWNER)


@pytest.mark.parametrize(
    ("data", "owner", "reason"),
    [
        (b"", OWNER, "its file is empty"),
        (b"\x02" + saved()[1:], OWNER, "its file has the version 2, but this gateway reads 1"),
        (saved() + b"\0", OWNER, "the CRC is not that"),
        (
            saved(),
            OWNER._replace(index=4),
            f"its file is that of partition 3 of the topic with the id {OWNER.topic_id}",
        ),
        (saved(), PartitionId(Uuid(bytes(16)), 3), "its file is that of partition 3 of the topic"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, owner: PartitionId, reason: str) -> None:
    with pytest.raises(UnusableLedger, match=reason):
        decode(data, owner)
