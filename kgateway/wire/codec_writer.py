"""
The walk over a message table in one version, which the writers of encoders and decoders share.

A writer keeps a *run* of fixed-size fields that it has met and not yet written. A field of another size first flushes
the run as a single `struct` call; so do the borders of loops and branches.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.source import Compiled, FunctionSource, LineField
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag

STRING_BYTES_MAX = 0x7FFF  # Kafka's bound in both forms of a length


class CodecWriter:
    """
    Walks a message in one version and calls a method for each value. The methods that raise NotImplementedError are
    the subclass's: each writes the lines for one kind of value. `value` is the expression of the value, `path` names
    the field in errors, and a `letter` is that of the value's length.
    """

    def __init__(self, message: type[Message], version: int, scope: dict[str, object]) -> None:
        spec = message.__spec__
        if version not in spec.versions:
            raise LookupError(f"{spec.name} has no version {version}")
        self.message, self.version = message, version
        self.compact, self.zigzag = version in spec.flexible, spec.zigzag
        self.source = FunctionSource(dict(scope))
        self.run: list[tuple[str, str, str]] = []  # letter of the struct module, expression, path
        self._names = 0

    def write(self) -> Compiled:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def name(self, hint: str) -> str:
        self._names += 1
        return f"{hint}{self._names}"

    @contextmanager
    def block(self, header: str, *fields: LineField) -> Iterator[None]:
        """
        A branch or loop: runs do not cross its borders.
        """
        self.flush()
        with self.source.block(header, *fields):
            yield
            self.flush()

    def fixed(self, letter: str, expression: str, path: str) -> None:
        self.run.append((letter, expression, path))

    def take_run(self) -> tuple[str, list[str], list[LineField]]:
        """
        The run as a layout, its expressions, and the place of each field in it.
        """
        run, self.run = self.run, []
        start, fields = 0, []
        for letter, expression, path in run:
            size = struct.calcsize(">" + letter)
            fields.append(LineField(path, start, size, letter, expression))
            start += size
        return "".join(letter for letter, _, _ in run), [expression for _, expression, _ in run if expression], fields

    def length_letter(self, kind: WireType, field: Field | None) -> str | None:
        """
        The letter of a length: `B` for the first byte of a compact one, `None` for a signed varint.
        """
        if self.zigzag:
            return None
        if self.compact and not (field and field.classic):
            return "B"
        return "h" if isinstance(kind, Text) else "i"

    def least_size(self, kind: WireType, field: Field | None = None) -> int:
        """
        The fewest bytes that a value can take; a declared number of items is checked against it.
        """
        match kind:
            case Fixed():
                return kind.size
            case UuidType():
                return 16
            case StructOf(inner):
                present = [f for f in inner.__fields__ if self.version in f.versions and f.tag is None]
                nullable = field is not None and self.version in field.nullable
                return 1 if nullable else self.compact + sum(self.least_size(f.type, f) for f in present)
            case _:
                letter = self.length_letter(kind, field)
                return struct.calcsize(">" + letter) if letter else 1

    def fields(self, kind: type[Struct], value: str, path: str) -> None:
        """
        Write the fields of a struct in their order, then its tagged section.
        """
        tagged: list[Field] = []
        for field in kind.__fields__:
            field_path = f"{path}.{field.name}" if path else field.name
            if self.version not in field.versions or field.tag is not None:
                self.absent(field, f"{value}.{field.name}")
                if self.version in field.versions:
                    tagged.append(field)
            else:
                self.value(field.type, f"{value}.{field.name}", field_path, field)
        if self.compact:
            self.tags(sorted(tagged, key=lambda f: f.tag or 0), value, path)

    def absent(self, field: Field, value: str) -> None:
        """
        Write the default of a field that this version does not have, or that may come as a tag. Encoders write nothing.
        """

    def tags(self, tagged: list[Field], value: str, path: str) -> None:
        raise NotImplementedError

    def value(self, kind: WireType, value: str, path: str, field: Field | None = None) -> None:
        """
        Write one value of any type: of a field, or an item of a list.
        """
        nullable = field is not None and self.version in field.nullable
        match kind:
            case Fixed(letter):
                self.fixed(letter, value, path)
            case UuidType():
                self.uuid(value, path)
            case Zigzag(bits):
                self.varint(bits, value, path)
            case Text() | Binary() | Referenced():
                self.sized(kind, value, path, nullable, self.length_letter(kind, field))
            case ListOf(item):
                self.items(item, value, path, nullable, self.length_letter(kind, field))
            case StructOf(inner) if nullable:
                self.nullable_struct(inner, value, path, null=-1 if field and field.tag is None else 0)
            case StructOf(inner):
                self.nested(inner, value, path)

    def uuid(self, value: str, path: str) -> None:
        raise NotImplementedError

    def varint(self, bits: int, value: str, path: str) -> None:
        raise NotImplementedError

    def sized(self, kind: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        raise NotImplementedError

    def items(self, item: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        raise NotImplementedError

    def nullable_struct(self, kind: type[Struct], value: str, path: str, null: int) -> None:
        """
        Write a struct that has a byte before it: 1, or the byte that stands for null (KIP-893).
        """
        raise NotImplementedError

    def nested(self, kind: type[Struct], value: str, path: str) -> None:
        raise NotImplementedError
