"""
Bytes that are wanted for a while, in temporary files: they take none of the process's memory, and of the machine's what
nobody else needs.

The files have no names, so none outlives the process. The oldest is given up when there are too many; it is there until
nothing refers to what is in it. What cannot be written stays in memory.
"""

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from twisted.logger import Logger

from kgateway.wire.types import Buffer

_FILES = 16  # that share what there may be
_PIECES = 8_192  # in a file: each takes some memory


class User(Protocol):
    """
    Who refers to pieces.
    """

    def shrink(self) -> None:
        """
        Refer no more to what is old, unless it must.
        """


class _File:
    __slots__ = ("__weakref__", "descriptor", "is_old", "pieces", "size")

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="kgateway-", buffering=0)  # noqa: SIM115  # it closes with this
        weakref.finalize(self, file.close)
        self.descriptor = file.fileno()
        self.size = self.pieces = 0
        self.is_old = False

    def append(self, data: Buffer) -> "Piece":
        start = end = self.size
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.descriptor, rest, end)
            rest, end = rest[written:], end + written
        self.size = end
        self.pieces += 1
        return Piece(self, start, end - start)


class Piece:
    """
    Some bytes of a file.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: _File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    @property
    def is_old(self) -> bool:
        """
        Whether its file is to go.
        """
        return self.file.is_old

    def read(self) -> bytes:
        """
        The bytes; an OSError where they cannot be had.
        """
        data = os.pread(self.file.descriptor, self.size, self.position)
        if len(data) != self.size:
            raise OSError(f"a temporary file gave {len(data)} bytes instead of {self.size}")
        return data


Stored = Piece | Buffer  # in a file, or in memory


class Spool:
    """
    For so many bytes of all who use it; with none everything stays in memory.
    """

    _log = Logger()

    def __init__(self, bytes_max: int) -> None:
        self._file_bytes = bytes_max // _FILES
        self._files: deque[_File] = deque()
        self._users: weakref.WeakSet[User] = weakref.WeakSet()
        self._fails = False

    def serve(self, user: User) -> None:
        """
        Tell somebody when files become old.
        """
        self._users.add(user)

    def keep(self, data: bytes) -> Stored:
        """
        Keep the bytes; themselves, where they could not be written.
        """
        if not self._file_bytes:
            return data
        try:
            piece = self._newest().append(data)
        except OSError as error:
            if not self._fails:
                problem = "what was produced lately stays in memory, for {folder} takes no more: {error}"
                self._log.warn(problem, folder=tempfile.gettempdir(), error=error)
            self._fails = True
            return data
        self._fails = False
        return piece

    def _newest(self) -> _File:
        """
        One that takes more.
        """
        newest = self._files[-1] if self._files else None
        if newest is None or newest.size >= self._file_bytes or newest.pieces >= _PIECES:
            newest = _File()
            self._files.append(newest)
            if len(self._files) > _FILES:
                self._files.popleft().is_old = True
                for user in tuple(self._users):
                    user.shrink()
        return newest


def read(found: Iterable[Stored]) -> list[Buffer]:
    """
    The bytes, in order; what follows one another in a file is read at once.
    """
    return [stored.read() if isinstance(stored, Piece) else stored for stored in _together(found)]


def _together(found: Iterable[Stored]) -> Iterator[Stored]:
    run: Piece | None = None
    for stored in found:
        if run and isinstance(stored, Piece) and stored.file is run.file and stored.position == run.position + run.size:
            run = Piece(run.file, run.position, run.size + stored.size)
            continue
        if run:
            yield run
        run = stored if isinstance(stored, Piece) else None
        if run is None:
            yield stored
    if run:
        yield run
