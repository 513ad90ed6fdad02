"""
What a state log gives, in the pieces that a test wants.
"""

from collections.abc import Iterable, Iterator

from twisted.internet.defer import Deferred, succeed

from kgateway.cluster.undecided import Undecided
from kgateway.interfaces import IReplay, KeyValue


class Replayed:
    """
    These pieces, and what is undecided behind them.
    """

    def __init__(self, pieces: Iterable[list[KeyValue]]) -> None:
        self.undecided: Undecided[bytes, bytes] = Undecided()
        self.began: dict[int, int] = {}
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[list[KeyValue]]:
        return self._pieces


def replayed(pieces: Iterable[list[KeyValue]]) -> "Deferred[IReplay]":
    """
    They are there at once.
    """
    return succeed(Replayed(pieces))  # type: ignore[arg-type]  # which provides it
