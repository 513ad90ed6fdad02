"""
Reads the records that `kgateway produce` sends: lines of files or of stdin, or whole files.
"""

import os
import stat
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kgateway.cli.common.errors import CommandError
from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.produce.record_json import record_in
from kgateway.client.send_queue import OutgoingRecord, place_text

STDIN = "-"
RECORD_BYTES_MAX = 64 << 20
_CHUNK_BYTES = 1 << 20
_LINGER_S = 0.01  # without new input what was read is sent


class Piece(NamedTuple):
    data: bytes
    place: str | tuple[str, int]


@dataclass(slots=True)
class Input:
    """
    Files that are read one after the other. `taken` counts the bytes read.
    """

    paths: Sequence[str]
    whole_files: bool
    interrupts: Interrupts
    taken: int = field(default=0, init=False)

    def size(self) -> int | None:
        """
        The total size of the files, unless one is a pipe or the like.
        """
        found = [_regular_size(path) for path in self.paths]
        return None if None in found else sum(size or 0 for size in found)

    @property
    def is_typed(self) -> bool:
        """
        Whether some of the records are typed at a terminal, whose line a progress bar would overwrite.
        """
        return STDIN in self.paths and sys.stdin.isatty()

    def pieces(self) -> Iterator[Piece | None]:
        """
        The records; None before a wait for more, so that the earlier ones can be sent.
        """
        for path in self.paths:
            name = "stdin" if path == STDIN else path
            try:
                yield from self._whole(path, name) if self.whole_files else self._lines(path, name)
            except OSError as error:
                raise CommandError(f"{name} cannot be read: {error.strerror or error}") from error

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
                raise CommandError(_too_long(f"{name}, line {number + 1}"))
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
                raise CommandError(_too_long(name))
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
    except OSError:  # reported when it is read
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _too_long(place: str) -> str:
    return f"{place}: a record of more than {RECORD_BYTES_MAX >> 20} MiB: is this really a single record?"


class RecordReader:
    """
    Reads records from pieces, and gives them the key, the headers and the partition of the options.
    """

    def __init__(self, options: Namespace) -> None:
        self._json: bool = options.json
        self._delimiter: bytes | None = options.key_delimiter
        self._key = None if options.key is None else options.key.encode(errors="surrogateescape")
        self._headers = tuple((name, value.encode(errors="surrogateescape")) for name, value in options.header)
        self._partition: int | None = options.partition
        self.look_at_the_clock()

    def look_at_the_clock(self) -> None:
        """
        Set the timestamp of records until the next call.
        """
        self._now_ms = time.time_ns() // 1_000_000

    def record(self, piece: Piece) -> OutgoingRecord:
        """
        Parse a record; CommandError with its place if it is invalid.
        """
        if self._json:
            return self._of_json(piece)
        key, value = self._key, piece.data
        if self._delimiter is not None:
            key, found, value = piece.data.partition(self._delimiter)
            if not found:
                between = self._delimiter.decode(errors="replace")
                raise CommandError(f"{place_text(piece.place)}: there is no {between!r} between a key and a value")
        return OutgoingRecord(key, value, self._now_ms, self._headers, self._partition, piece.place)

    def _of_json(self, piece: Piece) -> OutgoingRecord:
        try:
            written = record_in(piece.data)
        except ValueError as error:
            raise CommandError(f"{place_text(piece.place)}: {error}") from error
        return OutgoingRecord(
            self._key if written.key is None else written.key,
            written.value,
            self._now_ms if written.timestamp is None else written.timestamp,
            self._headers + written.headers,
            self._partition if written.partition is None else written.partition,
            piece.place,
        )
