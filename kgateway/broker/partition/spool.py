"""
Keeps recent bytes in temporary files: they take none of the process's memory, and of the machine's only what nothing
else needs.

The files have no names, so none outlives the process. The oldest is given up when there are too many; it exists until
nothing refers to its bytes. Bytes that cannot be written are kept in memory, and given up with those written at that
time.
"""

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from twisted.logger import Logger

from kgateway.log_messages import SPOOL_FAILED, SPOOL_MOVED
from kgateway.wire.types import Buffer

_FILES = 16  # share the bytes that may be kept
_PIECES = 8_192  # at most in a file, because each takes some memory
_FOLDER_NAMED_BY = ("TMPDIR", "TEMP", "TMP")  # the first that is set, if files can be written there


class SpoolUser(Protocol):
    def let_go(self) -> None:
        """
        Drop references to files whose lifetime is over.
        """


class Lifetime:
    """
    The time for which bytes are kept: shared by all that were kept while one file was the newest.
    """

    __slots__ = ("is_over",)

    def __init__(self) -> None:
        self.is_over = False


class _File:
    __slots__ = ("__weakref__", "descriptor", "lifetime", "pieces", "size")

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="kgateway-", buffering=0)  # noqa: SIM115  # the finalizer closes it
        weakref.finalize(self, file.close)
        self.descriptor = file.fileno()
        self.size = self.pieces = 0
        self.lifetime = Lifetime()

    def append(self, data: Buffer) -> "SpooledBytes":
        start = end = self.size
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.descriptor, rest, end)
            rest, end = rest[written:], end + written
        self.size = end
        self.pieces += 1
        return SpooledBytes(self, start, end - start)


class SpooledBytes:
    __slots__ = ("file", "position", "size")

    def __init__(self, file: _File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    @property
    def lifetime(self) -> Lifetime:
        return self.file.lifetime

    def read(self) -> Buffer:
        """
        Read them; raises OSError if they cannot be read.
        """
        data = os.pread(self.file.descriptor, self.size, self.position)
        if len(data) != self.size:
            raise OSError(f"a temporary file gave {len(data)} bytes instead of {self.size}")
        return data


class InMemory:
    __slots__ = ("_data", "lifetime")

    def __init__(self, data: Buffer, lifetime: Lifetime) -> None:
        self._data = data
        self.lifetime = lifetime

    def __len__(self) -> int:
        return len(self._data)

    def read(self) -> Buffer:
        return self._data


Stored = SpooledBytes | InMemory


class Spool:
    """
    Keeps up to this many bytes in files, for all users; with 0 bytes, everything is kept in memory.
    """

    _log = Logger()

    def __init__(self, bytes_max: int) -> None:
        self._file_bytes = bytes_max // _FILES
        self._files: deque[_File] = deque()
        self._users: weakref.WeakSet[SpoolUser] = weakref.WeakSet()
        self._no_file = Lifetime()
        self._fails = False

    def add_user(self, user: SpoolUser) -> None:
        """
        Call `let_go` of this user when a lifetime ends.
        """
        self._users.add(user)

    def keep(self, data: Buffer) -> Stored:
        if not self._file_bytes:
            return InMemory(data, self._lifetime)
        try:
            piece = self._writable_file().append(data)
        except OSError as error:
            before, self._fails = self._fails, True
            if not before:
                self._log.warn(SPOOL_FAILED, error=error)
            return InMemory(data, self._lifetime)
        self._fails = False
        return piece

    @property
    def _lifetime(self) -> Lifetime:
        return self._files[-1].lifetime if self._files else self._no_file

    def _writable_file(self) -> _File:
        newest = self._files[-1] if self._files else None
        if newest is None or newest.size >= self._file_bytes or newest.pieces >= _PIECES:
            newest = _File()
            if not self._files:
                self._warn_if_moved()
            self._files.append(newest)
            if len(self._files) > _FILES:
                self._files.popleft().lifetime.is_over = self._no_file.is_over = True
                for user in tuple(self._users):
                    user.let_go()
        return newest

    def _warn_if_moved(self) -> None:
        """
        Log where the files are, if that is not the folder that was named: Python takes another one in silence.
        """
        named = [(name, os.environ[name]) for name in _FOLDER_NAMED_BY if os.environ.get(name)]
        used = tempfile.gettempdir()
        if named and os.path.abspath(named[0][1]) != used:
            self._log.warn(SPOOL_MOVED, used=used, wanted="=".join(named[0]))


def read_spooled(found: Iterable[Stored]) -> list[Buffer]:
    """
    Read the bytes in order; neighbours in a file are read together.
    """
    return [stored.read() for stored in _together(found)]


def _together(found: Iterable[Stored]) -> Iterator[Stored]:
    run: SpooledBytes | None = None
    for stored in found:
        if (
            run
            and isinstance(stored, SpooledBytes)
            and stored.file is run.file
            and stored.position == run.position + run.size
        ):
            run = SpooledBytes(run.file, run.position, run.size + stored.size)
            continue
        if run:
            yield run
        run = stored if isinstance(stored, SpooledBytes) else None
        if run is None:
            yield stored
    if run:
        yield run
