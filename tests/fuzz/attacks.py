"""
Frames that cost their reader as much as possible: one list with as many of the smallest items as fit.
"""

from typing import Any

from kgateway.wire.codec import encode
from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag
from kgateway.wire.uuids import ZERO

# Small on the wire, and not among the numbers that Python caches.
_NUMBERS: dict[str, Any] = {"?": False, "b": -100, "h": -1000, "i": -1000, "q": -1000, "H": 1000, "I": 1000, "d": 1.5}


def bloated(message: type[Message], version: int, path: str, size: int) -> bytes:
    """
    A message of about this many bytes, nearly all of them in the list at this path.
    """
    one, two = (len(_filled(message, version, path, count)) for count in (1, 2))
    return _filled(message, version, path, max(1, (size - one) // (two - one)))


def _filled(message: type[Message], version: int, path: str, count: int) -> bytes:
    return encode(_struct(message, version, path.split("."), count), version)


def _struct(kind: type[Struct], version: int, path: list[str], count: int) -> Any:
    """
    A struct with small values, except `count` items in the list to which the path leads.
    """
    ahead = path[0] if path else None
    return kind(
        **{
            field.name: _value(field.type, version, path[1:] if field.name == ahead else [], count, field.name == ahead)
            for field in kind.__fields__
            if version in field.versions and (field.tag is None or field.name == ahead)
        }
    )


def _value(kind: WireType, version: int, path: list[str], count: int, on_the_way: bool) -> Any:
    match kind:
        case Fixed(letter):
            return _NUMBERS[letter]
        case Zigzag():
            return 0
        case Text():
            return ""
        case Binary() | Referenced():
            return b""
        case UuidType():
            return ZERO
        case ListOf(item):
            items = 0 if not on_the_way else 1 if path else count
            return [_value(item, version, path, count, on_the_way)] * items
        case StructOf(inner):
            return _struct(inner, version, path, count)
