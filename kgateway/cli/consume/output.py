r"""
Writes the records that are consumed, as lines of JSON or by a format string as kcat's `-f` has them:

    %t topic   %p partition   %o offset   %T timestamp in ms   %k key   %s value   %h headers, k=v,k=v
    %K length of the key, -1 for null     %S length of the value   %R the same in four bytes   %% a percent sign
    \n \r \t \\ \xHH
"""

import os
import re
import sys
from argparse import ArgumentTypeError, Namespace
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from select import PIPE_BUF
from typing import NamedTuple

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.stdio import writing
from kgateway.cli.produce.record_json import json_line
from kgateway.records.record import Header, Record
from kgateway.topic_partition import TopicPartition

Show = Callable[[bytes | None], bytes]
Write = Callable[[str, int, Record], bytes]  # from topic, partition and record

LINE = r"%s\n"
_PART = re.compile(r"%(.?)|\\x([0-9A-Fa-f]{2})|\\(.?)|([^%\\]+)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_NULL = b"NULL"
_BUFFER_BYTES = 64 * 1024


class _Pending(NamedTuple):
    """
    Records of a partition that are not written yet, and their texts.
    """

    partition: TopicPartition
    records: Sequence[Record]
    texts: list[bytes]


class Output:
    """
    Writes records to stdout, and counts them and the bytes of their keys and values. An interrupt ends a write that
    waits for the reader of a pipe; `lost` then has the offset of the first record of each partition that was not
    written whole.
    """

    def __init__(self, options: Namespace, interrupts: Interrupts) -> None:
        self.records = 0
        self.bytes = 0
        self.lost: dict[TopicPartition, int] = {}
        self._interrupts = interrupts
        self._file = sys.stdout.fileno()
        self._write: Write = json_line if options.json else _by_format(options)
        self._pending: list[_Pending] = []
        self._pending_bytes = 0

    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        topic, index, write = partition.topic, partition.index, self._write
        texts = [write(topic, index, record) for record in records]
        self._pending.append(_Pending(partition, records, texts))
        self._pending_bytes += sum(map(len, texts))
        if self._pending_bytes >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        data = b"".join([text for each in pending for text in each.texts])
        written = self._write_out(data)
        if written == len(data):
            for each in pending:
                self._count(each.records)
            return
        end = 0
        for partition, records, texts in pending:
            _, *ends = accumulate(map(len, texts), initial=end)
            whole = bisect_right(ends, written)
            self._count(records[:whole])
            if whole < len(records):
                self.lost.setdefault(partition, records[whole].offset)
            end = ends[-1] if ends else end

    def _count(self, records: Sequence[Record]) -> None:
        self.records += len(records)
        self.bytes += sum([len(record.key or b"") + len(record.value or b"") for record in records])

    def _write_out(self, data: bytes) -> int:
        """
        Write until all is written or an interrupt comes; returns the number of written bytes.
        """
        written, view = 0, memoryview(data)
        with writing():
            while written < len(data) and self._interrupts.writable(self._file):
                # A pipe that is ready has room for so much, and a write that waits could not be interrupted.
                written += os.write(self._file, view[written : written + PIPE_BUF])
        return written


def _by_format(options: Namespace) -> Write:
    form = LINE if options.format is None else options.format
    return writer(form, _show(options.key_as), _show(options.value_as))


def _show(wanted: str | None) -> Show:
    """
    Escape bytes for a person at a terminal, and write them raw for a program, unless an option decides.
    """
    return SHOWS[wanted or ("escaped" if sys.stdout.isatty() else "text")]


def _text(data: bytes | None) -> bytes:
    return data or b""


def _hex(data: bytes | None) -> bytes:
    return (data or b"").hex().encode()


def _escaped(data: bytes | None) -> bytes:
    r"""
    Escape what is not printable as \n, \t, \xHH and the like, so that a record is one line, and moves no cursor.
    """
    if data is None:
        return _NULL
    text = data.decode(errors="surrogateescape")
    if text.isprintable() and "\\" not in text:
        return data
    return "".join(map(_escaped_character, text)).encode()


def _escaped_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


SHOWS: dict[str, Show] = {"text": _text, "hex": _hex, "escaped": _escaped}


def check_format(text: str) -> str:
    _parts(text, _text, _text)
    return text


def writer(text: str, key: Show, value: Show) -> Write:
    if text == LINE:
        return lambda topic, partition, record: value(record.value) + b"\n"
    parts = _parts(text, key, value)
    return lambda topic, partition, record: b"".join(
        [part if isinstance(part, bytes) else part(topic, partition, record) for part in parts]
    )


def _parts(text: str, key: Show, value: Show) -> list[bytes | Write]:
    parts: list[bytes | Write] = []
    for match in _PART.finditer(text):
        field, byte, escape, plain = match.groups()
        if field is not None:
            parts.append(_field(field, match.start(), key, value))
        elif byte is not None:
            parts.append(bytes.fromhex(byte))
        elif escape is not None:
            if escape not in _ESCAPES:
                raise ArgumentTypeError(_wrong(f"\\{escape}", match.start(), r"\n \r \t \\ \xHH"))
            parts.append(_ESCAPES[escape])
        else:
            parts.append(plain.encode(errors="surrogateescape"))
    return parts


def _field(letter: str, position: int, key: Show, value: Show) -> bytes | Write:
    fields: dict[str, bytes | Write] = {
        "t": lambda topic, partition, record: topic.encode(),
        "p": lambda topic, partition, record: b"%d" % partition,
        "o": lambda topic, partition, record: b"%d" % record.offset,
        "T": lambda topic, partition, record: b"%d" % record.timestamp,
        "k": lambda topic, partition, record: key(record.key),
        "s": lambda topic, partition, record: value(record.value),
        "K": lambda topic, partition, record: b"%d" % _length(record.key),
        "S": lambda topic, partition, record: b"%d" % _length(record.value),
        "R": lambda topic, partition, record: _length(record.value).to_bytes(4, "big", signed=True),
        "h": lambda topic, partition, record: b",".join([_header(header, value) for header in record.headers]),
        "%": b"%",
    }
    if letter not in fields:
        raise ArgumentTypeError(_wrong(f"%{letter}", position, " ".join(f"%{one}" for one in fields)))
    return fields[letter]


def _wrong(what: str, position: int, known: str) -> str:
    return f"there is no format '{what}' (character {position + 1}); the formats are {known}"


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _header(header: Header, show: Show) -> bytes:
    name = show(header.key.encode(errors="surrogateescape"))
    return name + b"=" + (_NULL if header.value is None else show(header.value))
