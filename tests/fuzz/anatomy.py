"""
The positions of lengths, counts and sizes in an encoded message.

The walk follows the table and not the generated decoders, so that fuzzing which aims at these positions cannot miss
what the decoders miss. It trusts the bytes, which must be a message.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag
from kgateway.wire.varints import read_uvarint, read_varint, write_uvarint
from tests.fuzz.seeds import Seed


class Form(Enum):
    """
    The encoding of a length.
    """

    INT16 = "h"
    INT32 = "i"
    COMPACT = "one more than it is, unsigned"
    ZIGZAG = "signed"
    UNSIGNED = "as it is, unsigned"

    def written(self, number: int) -> bytes:
        """
        The bytes of a number, which this form may be unable to hold.
        """
        if self in (Form.INT16, Form.INT32):
            return struct.pack(">" + self.value, number)
        out = bytearray()
        write_uvarint(out, {Form.COMPACT: number + 1, Form.ZIGZAG: number << 1 ^ number >> 63}.get(self, number))
        return bytes(out)


class Role(Enum):
    ITEMS = "items of a list, or bytes of a string"
    TAGS = "tags of a section"
    TAG_BYTES = "bytes of a tag"


@dataclass(frozen=True, slots=True)
class Edit:
    start: int
    end: int
    data: bytes

    @property
    def growth(self) -> int:
        return len(self.data) - (self.end - self.start)


@dataclass(slots=True)
class Mark:
    """
    A length in a message: its bytes, its value, and the end of what it counts.
    """

    role: Role
    form: Form
    path: str
    nullable: bool
    start: int
    end: int
    number: int
    stop: int = 0

    def saying(self, number: int) -> Edit:
        """
        An edit that writes another number at the mark.
        """
        return Edit(self.start, self.end, self.form.written(number))


def edited(seed: Seed, mark: Mark, *edits: Edit) -> bytes:
    """
    The seed with edits at a mark, and with corrected sizes of the tags around the mark.
    """
    every, growth = list(edits), sum(edit.growth for edit in edits)
    for outer in reversed(marks(seed)):
        if outer.role is Role.TAG_BYTES and outer.start < mark.start < outer.stop:
            every.append(outer.saying(outer.number + growth))
            growth += every[-1].growth
    data = seed.data
    for edit in sorted(every, key=lambda e: e.start, reverse=True):
        data = data[: edit.start] + edit.data + data[edit.end :]
    return data


@lru_cache(10_000)
def marks(seed: Seed) -> list[Mark]:
    """
    The lengths of a seed, in order.
    """
    walk = _Walk(seed)
    walk.fields(seed.message, "")
    assert walk.pos == len(seed.data)
    return walk.marks


def paths(message: type[Message]) -> set[str]:
    """
    The places that a failure to decode a message can name.
    """
    fields = [path for version in message.__spec__.versions for path, _ in table(message, version)]
    sections = [path.rpartition(".")[0] + ".tags" for path in fields]
    return {"the end", "tags", *fields, *(path.strip(".") for path in sections)}


def tagged(message: type[Message], version: int) -> list[str]:
    """
    The fields that are tagged.
    """
    return [path for path, field in table(message, version) if field.tag is not None]


def lists(message: type[Message], version: int) -> list[str]:
    """
    The fields that are lists.
    """
    return [path for path, field in table(message, version) if isinstance(field.type, ListOf)]


def table(kind: type[Struct], version: int, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """
    The fields of a version with their paths, including those of structs.
    """
    for field in kind.__fields__:
        if version in field.versions:
            path, inner = prefix + field.name, field.type
            yield path, field
            if isinstance(inner, ListOf):
                inner = inner.item
            if isinstance(inner, StructOf):
                yield from table(inner.struct, version, path + ".")


class _Walk:
    """
    Follows the bytes of a message and records marks.
    """

    def __init__(self, seed: Seed) -> None:
        self._data, self._version = seed.data, seed.version
        self._flexible, self._zigzag = seed.version in seed.message.__spec__.flexible, seed.message.__spec__.zigzag
        self.pos = 0
        self.marks: list[Mark] = []

    def fields(self, kind: type[Struct], prefix: str) -> None:
        present = [f for f in kind.__fields__ if self._version in f.versions]
        for field in present:
            if field.tag is None:
                self._value(field.type, prefix + field.name, field)
        if self._flexible:
            self._section({f.tag: f for f in present if f.tag is not None}, prefix)

    def _section(self, tagged: dict[int, Field], prefix: str) -> None:
        section = self._mark(Role.TAGS, Form.UNSIGNED, prefix + "tags")
        for _ in range(section.number):
            number, self.pos = read_uvarint(self._data, self.pos)
            field = tagged.get(number)
            mark = self._mark(Role.TAG_BYTES, Form.UNSIGNED, prefix + (field.name if field else "tags"))
            mark.stop = self.pos + mark.number
            if field:
                self._value(field.type, prefix + field.name, field)
            self.pos = mark.stop
        section.stop = self.pos

    def _mark(self, role: Role, form: Form, path: str, nullable: bool = False) -> Mark:
        start = self.pos
        match form:
            case Form.INT16 | Form.INT32:
                layout = struct.Struct(">" + form.value)
                (number,), self.pos = layout.unpack_from(self._data, start), start + layout.size
            case Form.ZIGZAG:
                number, self.pos = read_varint(self._data, start)
            case _:
                number, self.pos = read_uvarint(self._data, start)
        number -= form is Form.COMPACT
        self.marks.append(Mark(role, form, path, nullable, start, self.pos, number))
        return self.marks[-1]

    def _value(self, kind: WireType, path: str, field: Field | None) -> None:
        nullable = field is not None and self._version in field.nullable
        match kind:
            case Fixed():
                self.pos += kind.size
            case UuidType():
                self.pos += 16
            case Zigzag():
                while self._data[self.pos] > 127:
                    self.pos += 1
                self.pos += 1
            case Text() | Binary() | Referenced():
                mark = self._mark(Role.ITEMS, self._form(kind, field), path, nullable)
                self.pos += max(0, mark.number)
            case ListOf(item):
                for _ in range(self._mark(Role.ITEMS, self._form(kind, field), path, nullable).number):
                    self._value(item, path, None)
            case StructOf(inner):
                self.pos += nullable
                if not nullable or self._is_there(field):
                    self.fields(inner, path + ".")

    def _is_there(self, field: Field | None) -> bool:
        """
        Whether the byte before a nullable struct announces one.
        """
        byte = int.from_bytes(self._data[self.pos - 1 : self.pos], "big", signed=True)
        return byte > 0 if field and field.tag is not None else byte >= 0

    def _form(self, kind: WireType, field: Field | None) -> Form:
        if self._zigzag:
            return Form.ZIGZAG
        if self._flexible and not (field and field.classic):
            return Form.COMPACT
        return Form.INT16 if isinstance(kind, Text) else Form.INT32
