"""
The search for valid batches behind damage.
"""

from random import Random

import pytest

from kgateway.broker.log.segments.damage import GoodBatch, search
from tests.broker.behaviour import batch
from tests.broker.log.batches import DATA, FIRST_OFFSET, SECOND, STARTS, Bytes, changed
from tests.broker.log.log_brokers import laid


def found(data: bytes, start: int, least: int = 0) -> tuple[int, int] | None:
    """
    Position and offset of the first valid batch.
    """
    steps = search(Bytes(data), start, len(data), lambda offset: offset >= least)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            good: GoodBatch | None = done.value
            return (good.position, good.batch.header.base_offset) if good else None


def test_batches_are_found_from_anywhere() -> None:
    """
    From each position on, the next batch is found.
    """
    for start in range(len(DATA)):
        later = [(at, offset) for at, offset in zip(STARTS, (10, 12, 13), strict=True) if at >= start]
        assert found(DATA, start) == (later[0] if later else None)


def test_only_good_ones_that_may_be_there() -> None:
    """
    A batch with a wrong CRC or an impossible offset is not found.
    """
    assert found(changed(SECOND + 70), 1) == (STARTS[2], 13)
    assert found(DATA, 0, least=13) == (STARTS[2], 13)
    assert found(DATA, 0, least=14) is None
    assert found(DATA[:-1], STARTS[1] + 1) is None


@pytest.mark.parametrize("piece", [61, 62, 100, 1 << 20])
def test_a_search_goes_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The result does not depend on the size of a read, even for larger batches.
    """
    monkeypatch.setattr("kgateway.broker.log.segments.damage.SCAN_BYTES", piece)
    noise = Random(1).randbytes(5000).replace(b"\x03", b"\x02")
    (large,) = laid(batch(50), first=FIRST_OFFSET)
    assert found(noise + large, 0) == (len(noise), FIRST_OFFSET)


def test_a_search_gives_way() -> None:
    """
    A long search yields after each piece.
    """
    steps = search(Bytes(bytes(3 << 20)), 0, 3 << 20, lambda offset: True)
    assert len(list(steps)) == 4


def test_a_search_stops() -> None:
    """
    Batches at the stop or behind it are not found.
    """
    assert [*search(Bytes(DATA), 1, len(DATA), lambda offset: True, STARTS[1])] == []
    steps = search(Bytes(DATA), 1, len(DATA), lambda offset: True, STARTS[1] + 1)
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value.position == STARTS[1]
