"""
Scans of a segment's bytes, whole and damaged.
"""

import pytest

from kgateway.broker.log.segments.batch_scan import (
    Damage,
    Damaged,
    check_batches,
    scan,
)
from kgateway.records.batch import Batch
from tests.broker.behaviour import batch
from tests.broker.log.batches import DATA, END, FIRST_OFFSET, PARTS, SECOND, STARTS, THIRD, Bytes, changed
from tests.broker.log.log_brokers import laid
from tests.records.crc_batches import sealed


def nobody_knows(_: int) -> None:
    """
    The leader epochs of the offsets, which are unknown.
    """


def found(data: bytes, end: int | None = None) -> list[Batch | Damage]:
    return list(scan(Bytes(data), 0, len(data) if end is None else end, FIRST_OFFSET))


def good(data: bytes) -> list[int]:
    """
    The offsets of the batches before the first damage.
    """
    offsets = list[int]()
    for each in found(data):
        if isinstance(each, Damage):
            break
        offsets.append(each.header.base_offset)
    return offsets


def test_whole_segments_are_scanned() -> None:
    """
    Each batch is found once, in order.
    """
    assert [batch.data for batch in found(DATA) if isinstance(batch, Batch)] == PARTS


@pytest.mark.parametrize("piece", [70, 100, 250, 1 << 20])
def test_scans_go_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The result does not depend on the size of a read, even for larger batches.
    """
    monkeypatch.setattr("kgateway.broker.log.segments.batch_scan.SCAN_BYTES", piece)
    parts = laid(*[batch(n % 5 + 1) for n in range(30)], first=FIRST_OFFSET)
    assert [batch.data for batch in found(b"".join(parts)) if isinstance(batch, Batch)] == parts


def test_a_changed_byte_is_found() -> None:
    """
    The scan finds damage in the changed batch or right behind it, except where nothing shows it: in the leader epoch,
    and in a base offset that increases without a batch behind it.
    """
    silent = set[int]()
    for at in range(END):
        for by in (1, 0x80, 0xFF):
            number = sum(at >= start for start in STARTS) - 1
            if all(isinstance(each, Batch) for each in found(changed(at, by=by))):
                silent.add(at)
            else:
                assert good(changed(at, by=by))[:number] == [10, 12, 13][:number], at
    assert {at for at in silent if at < THIRD} == {start + n for start in STARTS[:2] for n in range(12, 16)}
    assert {at - THIRD for at in silent if at >= THIRD} == {*range(8), *range(12, 16)}


def test_a_cut_is_found() -> None:
    """
    The batches before the cut are whole, and the rest of one is torn.
    """
    for size in range(END + 1):
        scanned = found(DATA[:size])
        assert good(DATA[:size]) == [
            offset for offset, end in zip((10, 12, 13), (SECOND, THIRD, END), strict=True) if end <= size
        ]
        start = max(border for border in (*STARTS, END) if border <= size)
        torn = [each for each in scanned if isinstance(each, Damage)]
        told = [(each.position, each.size, each.torn, each.misplaced) for each in torn]
        assert told == [(start, size - start, True, False)] * (size != start), size


def test_a_file_shorter_than_it_should_be() -> None:
    """
    A file with fewer bytes than expected is torn at its end.
    """
    *batches, torn = found(DATA[:-1], END)
    assert len(batches) == 2
    assert isinstance(torn, Damage)
    assert (torn.position, torn.size, torn.torn) == (THIRD, END - THIRD, True)


@pytest.mark.parametrize("at", [SECOND + 23, THIRD - 1], ids=["how many offsets", "records"])
def test_behind_a_changed_batch_the_scan_goes_on(at: int) -> None:
    """
    A batch with a wrong CRC is reported with its size, and those behind it are found, whatever its offsets.
    """
    first, damage, last = found(changed(at, by=0x7F))
    assert isinstance(first, Batch)
    assert isinstance(last, Batch)
    reason = "the CRC of the batch does not match its contents"
    assert damage == Damage(SECOND, THIRD - SECOND, reason, False)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([PARTS[0], *laid(batch(1), first=11)], "a batch with the offsets 11 to 11, where 12 is next"),
        (
            [PARTS[0], *laid(sealed(batch(), last_offset_delta=-1), first=12)],
            "a batch with the offsets 12 to 11, where 12 is next",
        ),
        ([*laid(batch(1), first=9)], "a batch with the offsets 9 to 9, where 10 is next"),
    ],
    ids=["again", "no offsets", "before the segment"],
)
def test_offsets_that_cannot_be(parts: list[bytes], reason: str) -> None:
    """
    A batch that begins before the previous one ends is torn; so is one without an offset.
    """
    damage = found(b"".join(parts))[-1]
    assert isinstance(damage, Damage)
    assert (damage.reason, damage.torn, damage.size) == (reason, True, len(parts[-1]))


def test_gaps_are_no_damage() -> None:
    """
    Offsets may be missing between two batches.
    """
    assert good(PARTS[0] + PARTS[2]) == [10, 13]


def test_pieces_are_checked() -> None:
    """
    Damage in a piece has its position in the segment.
    """
    check_batches(DATA[SECOND:], SECOND, 12, 16, nobody_knows)
    check_batches(DATA[SECOND:], SECOND, 12, None, nobody_knows)
    with pytest.raises(Damaged, match=f"^at byte {THIRD}: the CRC of the batch"):
        check_batches(changed(END - 1)[SECOND:], SECOND, 12, 16, nobody_knows)
    with pytest.raises(Damaged, match=f"^at byte {THIRD}: a batch of"):
        check_batches(DATA[SECOND:-1], SECOND, 12, 16, nobody_knows)


def test_offsets_that_do_not_fit_together() -> None:
    """
    No CRC covers the offset of a batch. Of two that contradict each other neither is trusted, even if the other is
    only expected, or follows.
    """
    for data, offset, following, at in (
        (DATA[SECOND:], 11, 16, SECOND),  # 12 is stored there
        (DATA, 10, 17, THIRD),  # 16 would follow
        (changed(SECOND + 7), 10, 16, SECOND),  # the third batch shows that the second is wrong
        (changed(SECOND + 7)[:THIRD], 10, None, 0),  # the first may be wrong
        (PARTS[0] + PARTS[2], 10, 16, 0),
    ):
        with pytest.raises(Damaged) as error:
            check_batches(data, SECOND if data == DATA[SECOND:] else 0, offset, following, nobody_knows)
        assert error.value.position == at
