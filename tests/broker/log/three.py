"""
The bytes of a segment of three batches.
"""

from kgateway.broker.log.index import OFFSETS, Index
from tests.broker.behaviour import batch
from tests.broker.log.making import laid

FIRST_OFFSET = 10
PARTS = laid(batch(2), batch(1), batch(3), first=FIRST_OFFSET)  # from offset 10, 12 and 13
STARTS = [0, len(PARTS[0]), len(PARTS[0]) + len(PARTS[1])]
DATA = b"".join(PARTS)
END = len(DATA)
_, SECOND, THIRD = STARTS
NO_BORDERS = Index(OFFSETS)


class Bytes:
    """
    A source that notes how much it was asked for.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, position: int, size: int) -> bytes:
        self.asked.append((position, size))
        return self._data[position : position + size]


def changed(at: int, data: bytes = DATA, by: int = 0xFF) -> bytes:
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]
