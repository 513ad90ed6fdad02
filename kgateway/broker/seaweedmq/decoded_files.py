"""
What was read of log files lately, as Kafka's batches, range by range.

A consumer that catches up reads a range in many pieces; it is fetched and decoded once for all of them. What is read
ahead for it may take half of the room, so that it does not drive out what others are reading; what was read to its end
stays for who comes soon, as long as half of the room is free.
"""

from collections import OrderedDict
from collections.abc import Collection
from typing import NamedTuple

from twisted.internet.defer import DeferredSemaphore

from kgateway.broker.tail import Tail
from kgateway.wire.types import Buffer

_AT_ONCE = 4  # ranges on their way


class Key(NamedTuple):
    """
    A range: of which file, and where it begins.
    """

    path: str
    first_chunk: str
    start: int


class Mark(NamedTuple):
    """
    Where a range begins in its file, and how Kafka's offsets go on there.
    """

    start: int
    end: int  # Kafka's offset before which all comes before it
    shift: int  # what Kafka's offsets are ahead of SeaweedMQ's


class Decoded(NamedTuple):
    """
    The batches of a range, and where the next one begins.
    """

    tail: Tail[Buffer]
    next: Mark


class DecodedFiles:
    """
    The ranges that were asked for last, as many as fit into so many bytes.
    """

    def __init__(self, bytes_max: int) -> None:
        self.places = DeferredSemaphore(_AT_ONCE)  # for those who fetch
        self._bytes_max = bytes_max
        self._bytes = 0
        self._ranges: OrderedDict[Key, Decoded] = OrderedDict()
        self._finished: set[Key] = set()
        self._ahead: dict[Key, int] = {}  # the bytes of those that nobody has asked for yet

    def get(self, key: Key) -> Decoded | None:
        """
        The range, if it is here.
        """
        self._ahead.pop(key, None)
        self._finished.discard(key)
        found = self._ranges.get(key)
        if found is not None:
            self._ranges.move_to_end(key)
        return found

    def may_read_ahead(self, key: Key, size: int) -> bool:
        """
        Whether a range is to be fetched before anybody asks for it; its place is taken then.
        """
        if key in self._ranges or key in self._ahead or sum(self._ahead.values()) + size > self._bytes_max // 2:
            return False
        self._ahead[key] = size
        return True

    def read_to_its_end(self, key: Key) -> None:
        """
        Whoever reads it goes on with the next one: let go of this first, and of all such where the room is half full.
        """
        if key in self._ranges:
            self._ranges.move_to_end(key, last=False)
            self._finished.add(key)
        while self._finished and self._bytes > self._bytes_max // 2:
            self._drop(min(self._finished))

    def keep(self, key: Key, decoded: Decoded) -> None:
        """
        Keep a range, and let go of those that nobody has asked for longest.
        """
        if key in self._ranges:
            self._bytes -= self._ranges[key].tail.size
        self._ranges[key] = decoded
        self._bytes += decoded.tail.size
        while self._bytes > self._bytes_max and len(self._ranges) > 1:
            self._drop(next(iter(self._ranges)))

    def not_kept(self, key: Key) -> None:
        """
        What was to be read ahead cannot be had.
        """
        self._ahead.pop(key, None)

    def forget(self, paths: Collection[str]) -> None:
        """
        Let go of what is of these files: they are gone, or are others now.
        """
        for key in [key for key in self._ranges if key.path in paths]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        self._bytes -= self._ranges.pop(key).tail.size
        self._ahead.pop(key, None)
        self._finished.discard(key)
