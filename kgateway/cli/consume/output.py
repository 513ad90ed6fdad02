r"""
Writes the records that are consumed, as lines of JSON or by a format string as kcat's `-f` has them:

    %t topic   %p partition   %o offset   %T timestamp in ms   %k key   %s value   %h headers, k=v,k=v
    %K length of the key, -1 for null     %S length of the value   %R the same in four bytes   %% a percent sign
    \n \r \t \\ \xHH
"""

import re
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence

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


class Output:
    """
    Writes records to stdout, and counts them and the bytes of their keys and values.
    """

    def __init__(self, options: Namespace) -> None:
        self.records = 0
        self.bytes = 0
        self._file = sys.stdout.buffer
        self._write: Write = json_line if options.json else _by_format(options)

    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        topic, index, write = partition.topic, partition.index, self._write
        data = b"".join([write(topic, index, record) for record in records])
        with writing():
            self._file.write(data)
        self.records += len(records)
        self.bytes += sum([len(record.key or b"") + len(record.value or b"") for record in records])

    def flush(self) -> None:
        with writing():
            self._file.flush()


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
