"""
A record as a line of JSON, as `kgateway consume --json` writes it and `kgateway produce --json` reads it:

    {"key": "a", "value": "42 apples", "headers": [{"key": "trace", "value": "7f"}], "timestamp": 1795284000000}

What is no text is base64, and the names of such fields stand in "base64": ["value"], in a header's object as in the
record's. Whoever writes by hand may give headers as an object, and leave out whatever the servers shall choose. A key
or a value that is JSON itself, such as 7 or {"a": 1}, is sent as it is written, character by character.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator
from typing import Any, NamedTuple

from kgateway.cli.exact_json import parsed, refuse_repeated, written

_FIELDS = {"key", "value", "headers", "partition", "timestamp", "base64"}
_TOLD = {"topic", "offset"}  # what `consume` says besides, and who produces has no say in
_PARTITION_MAX = (1 << 31) - 1
_TIMESTAMP_MAX = (1 << 63) - 1

Headers = tuple[tuple[str, bytes | None], ...]


class Written(NamedTuple):
    """
    What a line says of a record.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None
    timestamp: int | None


def read(line: bytes) -> Written:
    """
    The record; ValueError, in words, where it is none.
    """
    text, told = parsed(line)
    if not isinstance(told, dict):
        raise ValueError('a record is an object such as {"key": "a", "value": "b"}')
    unknown = sorted(told.keys() - _FIELDS - _TOLD)
    if unknown:
        raise ValueError(f"a record has no {unknown[0]!r}; it has {', '.join(sorted(_FIELDS))}")
    refuse_repeated(told, "the record")
    return Written(
        _bytes(told, "key", text),
        _bytes(told, "value", text),
        tuple(_headers(told.get("headers"))),
        _number(told, "partition", _PARTITION_MAX),
        _number(told, "timestamp", _TIMESTAMP_MAX),
    )


def _bytes(told: dict[str, Any], name: str, text: str = "") -> bytes | None:
    value, encoded = told.get(name), told.get("base64", [])
    if not isinstance(encoded, list):
        raise ValueError(f'"base64" is a list such as ["value"], and not {_shown(encoded)}')
    if value is None:
        return None
    if not isinstance(value, str):
        if not text or name in encoded:
            raise ValueError(f"{name!r} is a text, and not {_shown(value)}")
        return written(text, name).encode()
    if name not in encoded:
        return _encoded(value, name)
    try:
        return b64decode(value, validate=True)
    except (Error, ValueError):
        raise ValueError(f"{name!r} is no base64, as was promised") from None


def _headers(told: Any) -> Iterator[tuple[str, bytes | None]]:
    if told is None:
        return
    if isinstance(told, dict):
        refuse_repeated(told, "'headers', which may be a list")
    listed = [{"key": key, "value": value} for key, value in told.items()] if isinstance(told, dict) else told
    if not isinstance(listed, list):
        raise ValueError(f"'headers' is a list or an object, and not {_shown(told)}")
    for header in listed:
        if not isinstance(header, dict) or not isinstance(header.get("key"), str):
            raise ValueError(f'a header is an object such as {{"key": "a", "value": "b"}}, and not {_shown(header)}')
        refuse_repeated(header, "a header")
        _encoded(header["key"], "key")
        yield header["key"], _bytes(header, "value")


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")  # bytes of no text may stand in the key of a header
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} has one half of a character") from None


def _number(told: dict[str, Any], name: str, highest: int) -> int | None:
    value = told.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest):
        raise ValueError(f"{name!r} is a whole number from 0 to {highest}, and not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def with_text(told: dict[str, Any], **fields: bytes | None) -> dict[str, Any]:
    """
    The object with these fields, as text or, flagged, as base64.
    """
    encoded = []
    for name, data in fields.items():
        try:
            told[name] = None if data is None else data.decode()
        except UnicodeDecodeError:
            told[name] = b64encode(data or b"").decode()
            encoded.append(name)
    if encoded:
        told["base64"] = encoded
    return told
