"""
Bytes that are wanted for a while, in temporary files: they take none of the process's memory, and of the machine's what
nobody else needs.

The files have no names, so none outlives the process. The oldest is given up when there are too many; it is there until
nothing refers to what is in it. What cannot be written stays in memory, and is given up when what was written at that
time is.
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
_FOLDER_NAMED_BY = ("TMPDIR", "TEMP", "TMP")  # the first that is set, if files can be written there


class User(Protocol):
    """
    Who refers to what is kept.
    """

    def let_go(self) -> None:
        """
        Refer no more to files of an age that is over.
        """


class Age:
    """
    Of what was kept while one file was the newest.
    """

    __slots__ = ("is_over",)

    def __init__(self) -> None:
        self.is_over = False


class _File:
    __slots__ = ("__weakref__", "age", "descriptor", "pieces", "size")

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="kgateway-", buffering=0)  # noqa: SIM115  # it closes with this
        weakref.finalize(self, file.close)
        self.descriptor = file.fileno()
        self.size = self.pieces = 0
        self.age = Age()

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
    def age(self) -> Age:
        return self.file.age

    def read(self) -> Buffer:
        """
        The bytes; an OSError where they cannot be had.
        """
        data = os.pread(self.file.descriptor, self.size, self.position)
        if len(data) != self.size:
            raise OSError(f"a temporary file gave {len(data)} bytes instead of {self.size}")
        return data


class InMemory:
    """
    Bytes that are in no file.
    """

    __slots__ = ("_data", "age")

    def __init__(self, data: Buffer, age: Age) -> None:
        self._data = data
        self.age = age

    def __len__(self) -> int:
        return len(self._data)

    def read(self) -> Buffer:
        """
        The bytes.
        """
        return self._data


Stored = Piece | InMemory


class Spool:
    """
    For so many bytes of all who use it; with none everything stays in memory.
    """

    _log = Logger()

    def __init__(self, bytes_max: int) -> None:
        self._file_bytes = bytes_max // _FILES
        self._files: deque[_File] = deque()
        self._users: weakref.WeakSet[User] = weakref.WeakSet()
        self._no_file = Age()
        self._fails = False

    def serve(self, user: User) -> None:
        """
        Tell somebody when an age is over.
        """
        self._users.add(user)

    def keep(self, data: Buffer) -> Stored:
        """
        Keep the bytes.
        """
        if not self._file_bytes:
            return InMemory(data, self._age)
        try:
            piece = self._newest().append(data)
        except OSError as error:
            before, self._fails = self._fails, True
            if not before:
                problem = "what was produced lately stays in memory, for temporary files take no more: {error}"
                self._log.warn(problem, error=error)
            return InMemory(data, self._age)
        self._fails = False
        return piece

    @property
    def _age(self) -> Age:
        return self._files[-1].age if self._files else self._no_file

    def _newest(self) -> _File:
        """
        One that takes more.
        """
        newest = self._files[-1] if self._files else None
        if newest is None or newest.size >= self._file_bytes or newest.pieces >= _PIECES:
            newest = _File()
            if not self._files:
                self._tell_of_folder()
            self._files.append(newest)
            if len(self._files) > _FILES:
                self._files.popleft().age.is_over = self._no_file.is_over = True
                for user in tuple(self._users):
                    user.let_go()
        return newest

    def _tell_of_folder(self) -> None:
        """
        Where the files are, if that is not where they were to be: Python takes another folder in silence.
        """
        named = [(name, os.environ[name]) for name in _FOLDER_NAMED_BY if os.environ.get(name)]
        used = tempfile.gettempdir()
        if named and os.path.abspath(named[0][1]) != used:
            problem = "temporary files are in {used} in place of {wanted}, where none can be written"
            self._log.warn(problem, used=used, wanted="=".join(named[0]))


def read(found: Iterable[Stored]) -> list[Buffer]:
    """
    The bytes, in order; what follows one another in a file is read at once.
    """
    return [stored.read() for stored in _together(found)]


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
