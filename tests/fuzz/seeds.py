"""
Two valid encodings of every message in every version, always the same: a full and a sparse one.

A full one has all fields of its version, including tagged ones, and one or two items in every list. A sparse one has
null wherever possible. Together they take every branch of a decoder.
"""

import struct
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from kgateway.records.record import RecordBody
from kgateway.wire.codec import encode
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag
from kgateway.wire.uuids import SIZE, Uuid
from tests.wire.cases import EVERY_MESSAGE

MESSAGES: list[type[Message]] = [*EVERY_MESSAGE, RecordBody]  # the last one for its lengths, which are zigzag-encoded
_LETTERS = "ab/.-_ \0äßж語🙂"
_LONG = 130  # a compact length of two bytes


@dataclass(frozen=True, slots=True)
class Seed:
    """
    A version of a message, and bytes that encode one.
    """

    message: type[Message]
    version: int
    data: bytes


@cache
def seeds(message: type[Message]) -> list[Seed]:
    """
    The seeds of all versions of a message.
    """
    return [
        Seed(message, version, encode(_Maker(message, version, spare).struct(message), version))
        for version in message.__spec__.versions
        for spare in (False, True)
    ]


class _Maker:
    """
    Makes values of a message in one version.
    """

    def __init__(self, message: type[Message], version: int, spare: bool) -> None:
        self._version, self._spare = version, spare
        self._random = Random(f"{message.__name__} {version} {spare}")

    def struct(self, kind: type[Struct]) -> Any:
        return kind(**{f.name: self._field(f) for f in kind.__fields__ if self._version in f.versions})

    def _field(self, field: Field) -> Any:
        if self._spare and self._version in field.nullable:
            return None
        return self._value(field.type)

    def _value(self, kind: WireType) -> Any:
        match kind:
            case Fixed(letter):
                return struct.unpack(">" + letter, self._random.randbytes(kind.size))[0]
            case Zigzag(bits):
                return self._random.getrandbits(self._random.randint(1, bits - 1)) * self._random.choice((1, -1))
            case Text():
                return "".join(self._random.choices(_LETTERS, k=self._size()))
            case Binary() | Referenced():
                return self._random.randbytes(self._size())
            case UuidType():
                return Uuid(self._random.randbytes(SIZE))
            case ListOf(item):
                return [self._value(item) for _ in range(1 if self._spare else self._random.randint(1, 2))]
            case StructOf(inner):
                return self.struct(inner)

    def _size(self) -> int:
        return _LONG if self._random.random() < 0.02 else self._random.randint(1, 8)
