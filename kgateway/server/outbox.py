"""
Answers of a connection that are made and not written.
"""

from collections import deque

WRITE_BYTES = 64 << 10  # of small answers that leave together


class Outbox:
    """
    Gives small answers out together and a large one piece by piece: what a transport takes it copies. `size` says how
    many bytes there are, `written` how many have left.
    """

    __slots__ = ("_buffers", "size", "written")

    def __init__(self) -> None:
        self.size = self.written = 0
        self._buffers: deque[bytes] = deque()

    def put(self, buffers: list[bytes]) -> None:
        """
        Keep an answer.
        """
        self._buffers += buffers
        for buffer in buffers:
            self.size += len(buffer)

    def take(self) -> list[bytes]:
        """
        What is to be written next.
        """
        if self.size <= WRITE_BYTES:
            everything = list(self._buffers)
            self.written += self.size
            self.clear()
            return everything
        part: list[bytes] = []
        left = WRITE_BYTES
        while self._buffers and left > 0:
            part.append(self._buffers.popleft())
            left -= len(part[-1])
        self.size -= WRITE_BYTES - left
        self.written += WRITE_BYTES - left
        return part

    def all(self) -> list[bytes]:
        """
        Everything, which stays.
        """
        return list(self._buffers)

    def left(self, size: int) -> None:
        """
        So many bytes, the first of all, are on their way.
        """
        self.size -= size
        self.written += size
        while size:
            first = self._buffers.popleft()
            if len(first) > size:
                self._buffers.appendleft(first[size:])
            size -= min(len(first), size)

    def clear(self) -> None:
        """
        Forget them all.
        """
        self._buffers.clear()
        self.size = 0
