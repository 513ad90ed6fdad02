"""
Ranges of a log file: its messages, without the rest of it in memory.

A range begins where a message does, and has the whole messages of some bytes; what is there of the next one is left for
the range behind it. A message that is larger than that is a range of its own.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.broker.seaweedmq.log_entries import (
    LENGTH_SIZE,
    Entry,
    cut_off,
    entries,
    first_size,
    last_entry,
    whole_size,
)

Read = Callable[[int, int], Awaitable[bytes]]  # the bytes of a file, from the one place to the other


class MessageRange(NamedTuple):
    """
    Whole messages, and perhaps some bytes behind them.
    """

    start: int  # in the file
    data: bytes
    size: int  # of the messages

    @property
    def stop(self) -> int:
        """
        Where the next range begins.
        """
        return self.start + self.size

    def entries(self) -> Iterator[Entry]:
        """
        The messages.
        """
        return entries(self.data, self.size, self.start)

    def last(self) -> Entry:
        """
        The last of them.
        """
        return last_entry(self.data, self.size, self.start)


async def read_range(read: Read, start: int, size: int, range_bytes: int) -> MessageRange:
    """
    The messages from this place on, in a file that has so many bytes; Malformed where there is no whole one.
    """
    stop = min(start + range_bytes, size)
    data = await read(start, stop)
    while not (whole := whole_size(data, start)):
        if stop == size:
            raise cut_off(start, size)
        missing = first_size(data) if len(data) >= LENGTH_SIZE else LENGTH_SIZE
        begun, stop = stop, min(start + missing, size)
        data = b"".join((data, await read(begun, stop)))
    return MessageRange(start, data, whole)


async def read_ranges(read: Read, start: int, size: int, range_bytes: int) -> AsyncGenerator[MessageRange, None]:
    """
    All ranges from this place on. While one is looked at, the next is on its way.
    """
    coming: Deferred[MessageRange] | None = None
    try:
        while start < size:
            found = await (coming or read_range(read, start, size, range_bytes))
            start, coming = found.stop, None
            if start < size:
                coming = Deferred.fromCoroutine(read_range(read, start, size, range_bytes))
            yield found
    finally:
        if coming:
            coming.addErrback(lambda _: None)  # nobody waits for it any more
            coming.cancel()
