"""
What `kgateway produce` reads: lines of files or of what is piped in, or whole files.
"""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kgateway.cli.interrupts import Interrupts
from kgateway.cli.refused import Refused

STDIN = "-"
RECORD_BYTES_MAX = 64 << 20
_CHUNK_BYTES = 1 << 20
_LINGER_S = 0.01  # without new input what was read is sent


class Piece(NamedTuple):
    """
    A record as it is written, and where.
    """

    data: bytes
    place: str | tuple[str, int]


@dataclass(slots=True)
class Input:
    """
    The files, one after the other. `taken` counts the bytes that were read.
    """

    paths: Sequence[str]
    whole_files: bool
    interrupts: Interrupts
    taken: int = field(default=0, init=False)

    def size(self) -> int | None:
        """
        How many bytes there are in all, if that can be known.
        """
        found = [_regular_size(path) for path in self.paths]
        return None if None in found else sum(size or 0 for size in found)

    def pieces(self) -> Iterator[Piece | None]:
        """
        The records; None where more is to be waited for, so that what there is can be sent.
        """
        for path in self.paths:
            name = "stdin" if path == STDIN else path
            try:
                yield from self._whole(path, name) if self.whole_files else self._lines(path, name)
            except OSError as error:
                raise Refused(f"{name} cannot be read: {error.strerror or error}") from error

    def _lines(self, path: str, name: str) -> Iterator[Piece | None]:
        rest: list[bytes] = []
        number = waiting = 0
        for chunk in self._chunks(path):
            if chunk is None:
                yield None
                continue
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join([*rest, lines[0]])
                rest, waiting = [], 0
            for number, line in enumerate(lines, number + 1):  # noqa: B020  # it goes on counting
                yield Piece(line, (name, number))
            rest += [last] if last else []
            waiting += len(last)
            if waiting > RECORD_BYTES_MAX:
                raise Refused(_too_long(f"{name}, line {number + 1}"))
        if rest:
            yield Piece(b"".join(rest), (name, number + 1))

    def _whole(self, path: str, name: str) -> Iterator[Piece | None]:
        chunks: list[bytes] = []
        size = 0
        for chunk in self._chunks(path):
            if chunk is None:
                continue
            chunks.append(chunk)
            size += len(chunk)
            if size > RECORD_BYTES_MAX:
                raise Refused(_too_long(name))
        yield Piece(b"".join(chunks), name)

    def _chunks(self, path: str) -> Iterator[bytes | None]:
        file = sys.stdin.fileno() if path == STDIN else os.open(path, os.O_RDONLY)
        try:
            while True:
                if not self.interrupts.ready(file, _LINGER_S):
                    yield None
                    if not self.interrupts.ready(file):
                        return
                chunk = os.read(file, _CHUNK_BYTES)
                if not chunk:
                    return
                self.taken += len(chunk)
                yield chunk
        finally:
            if path != STDIN:
                os.close(file)


def _regular_size(path: str) -> int | None:
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STDIN else os.stat(path)
    except OSError:  # it will be told when it is read
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _too_long(place: str) -> str:
    return f"{place}: a record of more than {RECORD_BYTES_MAX >> 20} MiB: is that really one?"
