"""
A record as a line of JSON, as `kgateway consume --json` writes it and `kgateway produce --json` reads it:

    {"key": "a", "value": "42 apples", "headers": [{"key": "trace", "value": "7f"}], "timestamp": 1795284000000}

Bytes that are no text are in base64, and the names of such fields in "base64": ["value"], in the object of a header as
in that of the record. By hand one may write headers as an object, and leave out what the servers choose. A key or a
value that is JSON itself, such as 7 or {"a": 1}, is sent as it is written, character by character. So nothing may be
lost in reading: a repeated name is refused, and a number that would be read as another one.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator
from typing import Any, NamedTuple

from kgateway.records.record import Header, Record

_FIELDS = {"key", "value", "headers", "partition", "timestamp", "base64"}
_PRINTED = {"topic", "offset"}  # by `consume`, and ignored by `produce`
_PARTITION_MAX = (1 << 31) - 1
_TIMESTAMP_MAX = (1 << 63) - 1
_DIGITS_MAX = 20  # more than any field takes; Python refuses to read some thousands of them
_SPACE = re.compile(r"[ \t\n\r]*")

Headers = tuple[tuple[str, bytes | None], ...]


class RecordFields(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None
    timestamp: int | None


def record_in(line: bytes) -> RecordFields:
    """
    Parse a line; ValueError with a reason if it is no record.
    """
    text, fields = _parsed(line)
    if not isinstance(fields, dict):
        raise ValueError('a record is an object such as {"key": "a", "value": "b"}')
    unknown = sorted(fields.keys() - _FIELDS - _PRINTED)
    if unknown:
        raise ValueError(f"a record has no field {unknown[0]!r}; its fields are {', '.join(sorted(_FIELDS))}")
    _refuse_repeated(fields, "the record")
    return RecordFields(
        _bytes(fields, "key", text),
        _bytes(fields, "value", text),
        tuple(_headers(fields.get("headers"))),
        _number(fields, "partition", _PARTITION_MAX),
        _number(fields, "timestamp", _TIMESTAMP_MAX),
    )


def _bytes(fields: dict[str, Any], name: str, text: str = "") -> bytes | None:
    value, encoded = fields.get(name), fields.get("base64", [])
    if not isinstance(encoded, list):
        raise ValueError(f'"base64" is a list such as ["value"], not {_shown(encoded)}')
    if value is None:
        return None
    if not isinstance(value, str):
        if not text or name in encoded:
            raise ValueError(f"{name!r} is a string, not {_shown(value)}")
        return _as_written(text, name).encode()
    if name not in encoded:
        return _encoded(value, name)
    try:
        return b64decode(value, validate=True)
    except (Error, ValueError):
        raise ValueError(f"{name!r} is not base64, although `base64` names it") from None


def _headers(found: Any) -> Iterator[tuple[str, bytes | None]]:
    if found is None:
        return
    if isinstance(found, dict):
        _refuse_repeated(found, "'headers', which may be a list,")
    listed = [{"key": key, "value": value} for key, value in found.items()] if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise ValueError(f"'headers' is a list or an object, not {_shown(found)}")
    for header in listed:
        if not isinstance(header, dict) or not isinstance(header.get("key"), str):
            raise ValueError(f'a header is an object such as {{"key": "a", "value": "b"}}, not {_shown(header)}')
        _refuse_repeated(header, "a header")
        _encoded(header["key"], "key")
        yield header["key"], _bytes(header, "value")


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")  # bytes of no text may stand in the key of a header
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} has half of a surrogate pair") from None


def _number(fields: dict[str, Any], name: str, highest: int) -> int | None:
    value = fields.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest):
        raise ValueError(f"{name!r} is a whole number from 0 to {highest}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def json_line(topic: str, partition: int, record: Record) -> bytes:
    return json.dumps({"topic": topic, "partition": partition} | record_fields(record)).encode() + b"\n"


def record_fields(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp if record.timestamp >= 0 else None,
    }
    _add_text(fields, key=record.key, value=record.value)
    fields["headers"] = [_header(header) for header in record.headers]
    return fields


def _header(header: Header) -> dict[str, Any]:
    return _add_text({"key": header.key}, value=header.value)


def _add_text(fields: dict[str, Any], **texts: bytes | None) -> dict[str, Any]:
    """
    The object with these fields, as text or, flagged, in base64.
    """
    encoded = []
    for name, data in texts.items():
        try:
            fields[name] = None if data is None else data.decode()
        except UnicodeDecodeError:
            fields[name] = b64encode(data or b"").decode()
            encoded.append(name)
    if encoded:
        fields["base64"] = encoded
    return fields


class _Repeating(dict[str, Any]):
    """
    An object with a repeated name; it has the last value of each name.
    """


class _NoNumber(ValueError):
    """
    A number that JSON lacks (NaN, Infinity) or that is too large for a float of Python.
    """


def _parsed(line: bytes) -> tuple[str, Any]:
    """
    The text and its JSON value; ValueError with a reason if it is invalid.
    """
    try:
        text = line.decode("utf-8-sig")
        return text, _DECODER.decode(text)
    except _NoNumber:
        raise
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"this is not JSON{where}: {getattr(error, 'msg', error)}") from None


def _as_written(text: str, wanted: str) -> str:
    """
    The text of a field's value, character by character, in the text of an object.
    """
    at, name = text.index("{"), None
    while name != wanted:
        name, at = _DECODER.raw_decode(text, _behind_space(text, at + 1))  # behind { or ,
        start = _behind_space(text, _behind_space(text, at) + 1)  # behind :
        _, end = _DECODER.raw_decode(text, start)
        at = _behind_space(text, end)
    return text[start:end]


def _refuse_repeated(found: dict[str, Any], what: str) -> None:
    """
    ValueError if a name is repeated, because one of its values would be lost.
    """
    if isinstance(found, _Repeating):
        raise ValueError(f"{what} has the same name twice")


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Repeating(found)


def _integer(text: str) -> float:
    return int(text) if len(text) <= _DIGITS_MAX else math.inf


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NoNumber(f"{text} is too large for a number")
    return number


def _constant(text: str) -> float:
    raise _NoNumber(f"this is not JSON: it does not have {text}")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
