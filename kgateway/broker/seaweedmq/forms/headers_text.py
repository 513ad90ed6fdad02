"""
The headers of a record as a text that people read in SQL, and from which they come back as they were:

    [["trace", "17"], ["none", null], ["image", {"base64": "/9j/4A=="}]]

A value that is no UTF-8 is in base64.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from kgateway.records.record import Header

_BASE64 = "base64"


def headers_text(headers: Iterable[Header]) -> str:
    """
    These as a text.
    """
    pairs = [(header.key, _told(header.value)) for header in headers]
    text = json.dumps(pairs, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a key that is no UTF-8
        return json.dumps(pairs)
    return text


def headers_of(text: str) -> tuple[Header, ...]:
    """
    Those of a text; a ValueError where it is none of ours.
    """
    try:
        return tuple(Header(_key(key), _value(told)) for key, told in json.loads(text))
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"{text[:80]!r} tells of no headers") from error


def _told(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {_BASE64: b64encode(value).decode()}


def _key(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError(told)
    return told


def _value(told: Any) -> bytes | None:
    match told:
        case None:
            return None
        case str():
            return told.encode()
        case _:
            return b64decode(told[_BASE64], validate=True)
