"""
Good batches behind damage.
"""

from collections.abc import Iterator
from random import Random

import pytest

from kgateway.broker.log.seeking import seek
from kgateway.records.batch import Batch
from tests.broker.behaviour import batch
from tests.broker.log.making import laid
from tests.broker.log.three import DATA, FIRST_OFFSET, SECOND, STARTS, Bytes, changed


def found(data: bytes, start: int, least: int = 0) -> tuple[int, int] | None:
    """
    Where the first good batch stands, and its offset.
    """
    position, steps = start, iter(seek(Bytes(data), start, len(data), lambda offset: offset >= least))
    for each in steps:
        if isinstance(each, Batch):
            assert next(steps, None) is None
            return position, each.header.base_offset
        position += each
    return None


def test_batches_are_found_from_anywhere() -> None:
    """
    From each position on, the next one that begins is found.
    """
    for start in range(len(DATA)):
        later = [(at, offset) for at, offset in zip(STARTS, (10, 12, 13), strict=True) if at >= start]
        assert found(DATA, start) == (later[0] if later else None)


def test_only_good_ones_that_may_be_there() -> None:
    """
    Neither one whose CRC does not hold, nor one whose offset cannot be.
    """
    assert found(changed(SECOND + 70), 1) == (STARTS[2], 13)
    assert found(DATA, 0, least=13) == (STARTS[2], 13)
    assert found(DATA, 0, least=14) is None
    assert found(DATA[:-1], STARTS[1] + 1) is None


@pytest.mark.parametrize("piece", [61, 62, 100, 1 << 20])
def test_a_search_goes_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However much is read at once, and though the batch be larger.
    """
    monkeypatch.setattr("kgateway.broker.log.seeking.PIECE", piece)
    noise = Random(1).randbytes(5000).replace(b"\x03", b"\x02")
    (large,) = laid(batch(50), first=FIRST_OFFSET)
    assert found(noise + large, 0) == (len(noise), FIRST_OFFSET)


def test_a_search_gives_way() -> None:
    """
    After each piece of a long one.
    """
    steps: Iterator[Batch | int] = seek(Bytes(bytes(3 << 20)), 0, 3 << 20, lambda offset: True)
    assert len(list(steps)) == 4
