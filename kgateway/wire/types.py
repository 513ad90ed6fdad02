"""
The types a field can have on the wire, and the names that tables write them with.

An annotation such as `i32` is an `int` to a type checker and carries a `Fixed` for the engine; `str`, `bytes`, `bool`,
`Uuid`, `list[...]` and a nested `Struct` stand for themselves.
"""

import struct
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any

from kgateway.wire.uuids import Uuid


@dataclass(frozen=True, slots=True)
class Fixed:
    """
    A number of fixed size, named by its letter in the `struct` module.
    """

    letter: str

    @property
    def size(self) -> int:
        return struct.calcsize(">" + self.letter)


@dataclass(frozen=True, slots=True)
class Zigzag:
    """
    A signed varint of at most this many bits.
    """

    bits: int


@dataclass(frozen=True, slots=True)
class Text:
    """
    UTF-8 after its length.
    """


@dataclass(frozen=True, slots=True)
class Binary:
    """
    Bytes after their length, copied out of the frame.
    """


@dataclass(frozen=True, slots=True)
class Referenced:
    """
    Record batches after their length: a view of the frame when read, passed on without a copy when written.
    """


@dataclass(frozen=True, slots=True)
class UuidType:
    """
    A UUID.
    """


@dataclass(frozen=True, slots=True)
class ListOf:
    """
    Items after their count.
    """

    item: "WireType"


@dataclass(frozen=True, slots=True)
class StructOf:
    """
    The fields of a nested struct, in place.
    """

    struct: type[Any]


WireType = Fixed | Zigzag | Text | Binary | Referenced | UuidType | ListOf | StructOf

Buffer = bytes | bytearray | memoryview

i8 = Annotated[int, Fixed("b")]
i16 = Annotated[int, Fixed("h")]
i32 = Annotated[int, Fixed("i")]
i64 = Annotated[int, Fixed("q")]
u16 = Annotated[int, Fixed("H")]
u32 = Annotated[int, Fixed("I")]
f64 = Annotated[float, Fixed("d")]
varint = Annotated[int, Zigzag(32)]
varlong = Annotated[int, Zigzag(64)]
Records = Annotated[Buffer | list[Buffer], Referenced()]

_PLAIN: dict[object, WireType] = {bool: Fixed("?"), str: Text(), bytes: Binary(), Uuid: UuidType()}


def resolve(annotation: Any) -> tuple[WireType, bool]:
    """
    The wire type of an annotation, and whether it admits `None`.
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        present = [part for part in typing.get_args(annotation) if part is not types.NoneType]
        if len(present) == 1:
            return _wire_type(present[0]), True
    return _wire_type(annotation), False


def _wire_type(annotation: Any) -> WireType:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if typing.get_origin(annotation) is Annotated:
        return typing.cast(WireType, annotation.__metadata__[0])
    if typing.get_origin(annotation) is list:
        return ListOf(_wire_type(typing.get_args(annotation)[0]))
    if hasattr(annotation, "__fields__"):
        return StructOf(annotation)
    raise TypeError(f"{annotation!r} has no form on the wire")
