"""
Ranges of a log file: its messages, without the rest of it in memory.

A range begins where a message does, and has the whole messages of some bytes; a part of the next message is left for
the range after it. A message that is larger than that is a range of its own.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.broker.seaweedmq.formats.log_entry import (
    LENGTH_SIZE,
    LoggedMessage,
    cut_off,
    first_size,
    last_entries,
    logged_messages,
    whole_size,
)

Read = Callable[[int, int], Awaitable[bytes]]  # the bytes of a file, between two positions


class MessageRange(NamedTuple):
    """
    Whole messages, and perhaps some bytes after them.
    """

    start: int  # in the file
    data: bytes
    size: int  # of the messages

    @property
    def stop(self) -> int:
        """
        The position of the next range.
        """
        return self.start + self.size

    def messages(self) -> Iterator[LoggedMessage]:
        return logged_messages(self.data, self.size, self.start)

    def last(self, wanted: int) -> tuple[list[LoggedMessage], int]:
        """
        The last messages, as many as are wanted, and how many there are.
        """
        return last_entries(self.data, self.size, wanted, self.start)


async def read_range(read: Read, start: int, size: int, range_bytes: int) -> MessageRange:
    """
    The range at this position in a file of this size. Raises Malformed if there is no whole message.
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
    All ranges from this position on. While one is processed, the next is on its way.
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
