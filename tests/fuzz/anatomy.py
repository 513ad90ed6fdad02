"""
Where in an encoded message the lengths, the counts and the sizes stand.

A walk along the table that knows nothing of the generated decoders, so that what aims at these places cannot miss the
ones they miss. It trusts the bytes: only for seeds.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from functools import cache

from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, Sixteen, StructOf, Text, WireType, Zigzag
from kgateway.wire.varints import read_uvarint, read_varint, write_uvarint
from tests.fuzz.seeds import Seed


class Form(Enum):
    """
    How a length is written.
    """

    INT16 = "h"
    INT32 = "i"
    COMPACT = "one more than it is, unsigned"
    ZIGZAG = "signed"
    UNSIGNED = "as it is, unsigned"

    def written(self, number: int) -> bytes:
        """
        The bytes of a number, which need not be one that this form can hold.
        """
        if self in (Form.INT16, Form.INT32):
            return struct.pack(">" + self.value, number)
        out = bytearray()
        write_uvarint(out, {Form.COMPACT: number + 1, Form.ZIGZAG: number << 1 ^ number >> 63}.get(self, number))
        return bytes(out)


class Role(Enum):
    """
    What a length counts.
    """

    ITEMS = "items of a list, or bytes of a string"
    TAGS = "tags of a section"
    TAG_BYTES = "bytes of a tag"


@dataclass(frozen=True, slots=True)
class Edit:
    """
    Bytes that replace others.
    """

    start: int
    end: int
    data: bytes

    @property
    def growth(self) -> int:
        return len(self.data) - (self.end - self.start)


@dataclass(slots=True)
class Mark:
    """
    A length in a message: its bytes, what it says, and where that which it counts ends.
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
        Another number in its place.
        """
        return Edit(self.start, self.end, self.form.written(number))


def edited(seed: Seed, mark: Mark, *edits: Edit) -> bytes:
    """
    The seed with edits at a mark, and with correct sizes of the tags that the mark is inside of.
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


@cache
def marks(seed: Seed) -> list[Mark]:
    """
    The lengths of a seed, in their order.
    """
    walk = _Walk(seed)
    walk.fields(seed.message, "")
    assert walk.pos == len(seed.data)
    return walk.marks


def paths(message: type[Message]) -> set[str]:
    """
    The places that a failure to decode a message can name.
    """
    return {"the end", *_paths(message, "")}


def _paths(kind: type[Struct], prefix: str) -> set[str]:
    found = {prefix + "tags"}
    for field in kind.__fields__:
        path, inner = prefix + field.name, field.type
        found.add(path)
        if isinstance(inner, ListOf):
            inner = inner.item
        if isinstance(inner, StructOf):
            found |= _paths(inner.struct, path + ".")
    return found


class _Walk:
    """
    Goes through the bytes of a message and leaves marks.
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
            field = tagged[number]
            mark = self._mark(Role.TAG_BYTES, Form.UNSIGNED, prefix + field.name)
            self._value(field.type, prefix + field.name, field)
            mark.stop = self.pos
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
            case Sixteen():
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
                if not nullable or self._data[self.pos - 1] == 1:
                    self.fields(inner, path + ".")

    def _form(self, kind: WireType, field: Field | None) -> Form:
        if self._zigzag:
            return Form.ZIGZAG
        if self._flexible and not (field and field.classic):
            return Form.COMPACT
        return Form.INT16 if isinstance(kind, Text) else Form.INT32
