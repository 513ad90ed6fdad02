"""
Generates, for a message in one version, the flat function that encodes it.

What is generated for MetadataRequest v4, shortened:

    def encode(message):
        out, parts = bytearray(), []
        value1 = message.topics
        n = -1 if value1 is None else len(value1)
        out += pack_i(n)
        ...
        parts.append(out)
        return parts

The result is a list of buffers: record batches as they are, and bytearrays with the bytes between them.
"""

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from kgateway.wire.codec_writer import STRING_BYTES_MAX, CodecWriter
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.source import Compiled, LineField
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType
from kgateway.wire.varints import write_uvarint, write_varint, write_varlong


class _Packers(dict[int, Callable[..., bytes]]):
    """
    The functions that pack a run, a length and that many items in one call, by the number of items.
    """

    def __init__(self, run: str, length: str, item: str) -> None:
        self._run, self._length, self._item = run, length, item

    def __missing__(self, count: int) -> Callable[..., bytes]:
        if self._length == "B" and count > 126:
            return self._pack_long
        pack = struct.Struct(f">{self._run}{self._length}{count}{self._item}").pack
        if count <= 64:
            self[count] = pack
        return pack

    def _pack_long(self, *values: Any) -> bytes:
        """
        Pack more items than one byte of length can say.
        """
        fields = len(self._run.replace("16s", "s").replace("x", ""))
        out = bytearray(struct.pack(">" + self._run, *values[:fields]))
        write_uvarint(out, values[fields])
        items = values[fields + 1 :]
        return bytes(out) + struct.pack(f">{len(items)}{self._item}", *items)


def _refuse_long() -> NoReturn:
    raise ValueError(f"a string of more than {STRING_BYTES_MAX} bytes")


def _buffer_size(buffer: object) -> int:
    match buffer:
        case bytes() | bytearray():
            return len(buffer)
        case memoryview():
            return buffer.nbytes
        case _:
            raise TypeError(f"records are bytes, a view or a list of these, not {type(buffer).__name__}")


def _records_size(records: object) -> int:
    return sum(map(_buffer_size, records)) if isinstance(records, list) else _buffer_size(records)


_SCOPE: dict[str, object] = {
    "uvarint": write_uvarint,
    "varint_32": write_varint,
    "varint_64": write_varlong,
    "refuse_long": _refuse_long,
    "records_size": _records_size,
}


class EncoderWriter(CodecWriter):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version, _SCOPE)
        self._out = "out"  # the bytearray that is being written

    def write(self) -> Compiled:
        with self.source.block("def encode(message):"):
            self.source.line("out, parts = bytearray(), []")
            self.fields(self.message, "message", "")
            self.flush()
            self.source.line("if out: parts.append(out)")
            self.source.line("return parts")
        return self.source.compile("encode", f"encode {self.message.__spec__.name} v{self.version}")

    def flush(self) -> None:
        if not self.run:
            return
        letters, values, fields = self.take_run()
        if letters in ("B", "x"):
            self.source.line(f"{self._out}.append({''.join(values) or 0})", *fields)
        else:
            self.source.line(f"{self._out} += {self.source.packer(letters, 'pack')}({', '.join(values)})", *fields)

    def nested(self, kind: type[Struct], value: str, path: str) -> None:
        local = self.name("inner")
        self.source.line(f"{local} = {value}", LineField(path))
        self.fields(kind, local, path)

    def nullable_struct(self, kind: type[Struct], value: str, path: str, null: int) -> None:
        with self.block(f"if {value} is None:", LineField(path)):
            self.fixed("b", str(null), path)
        with self.block("else:"):
            self.fixed("b", "1", path)
            self.nested(kind, value, path)

    def uuid(self, value: str, path: str) -> None:
        self.fixed("16s", value, path)

    def varint(self, bits: int, value: str, path: str) -> None:
        self.flush()
        self.source.line(f"varint_{bits}({self._out}, {value})", LineField(path))

    def _length(self, letter: str | None, path: str, bounded: bool = False) -> None:
        """
        Write the length `n`, -1 for null, together with the run before it.
        """
        if letter is None:
            self.varint(32, "n", path)
        elif letter != "B":
            self.fixed(letter, "n", path)
            self.flush()
        else:
            run = list(self.run)
            self.source.line("n += 1")
            with self.source.block("if n < 128:"):
                self.fixed("B", "n", path)
                self.flush()
            with self.source.block("else:"):
                if bounded:
                    self.source.line(f"if n > {STRING_BYTES_MAX + 1}: refuse_long()", LineField(path))
                self.run = run
                self.flush()
                self.source.line(f"uvarint({self._out}, n)", LineField(path))

    def _measured(self, value: str, path: str, nullable: bool, *, form: str = "{}", size: str = "len({})") -> str:
        """
        A local variable with the value in the form that is written, and its size in `n`: -1 for null, whose form is
        empty.
        """
        local = self.name("value")
        self.source.line(f"{local} = {value}", LineField(path))
        if nullable:
            with self.source.block(f"if {local} is None:"):
                self.source.line(f"n, {local} = -1, b''")
            with self.source.block("else:"):
                self._measure(local, path, form, size)
        else:
            self._measure(local, path, form, size)
        return local

    def _measure(self, local: str, path: str, form: str, size: str) -> None:
        if form != "{}":
            self.source.line(f"{local} = {form.format(local)}", LineField(path))
        self.source.line(f"n = {size.format(local)}", LineField(path))

    def sized(self, kind: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        if isinstance(kind, Referenced):
            self._referenced(value, path, nullable, letter)
            return
        text = isinstance(kind, Text)
        local = self._measured(value, path, nullable, form="{}.encode()" if text else "{}")
        self._length(letter, path, bounded=text)
        self.source.line(f"{self._out} += {local}", LineField(path))

    def _referenced(self, value: str, path: str, nullable: bool, letter: str | None) -> None:
        if self._out != "out":
            raise TypeError(f"{path}: records cannot travel as a tag")
        local = self._measured(value, path, nullable, size="records_size({})")
        self._length(letter, path)
        with self.source.block("if n > 0:"):
            self.source.line("parts.append(out)")
            self.source.line(
                f"parts.extend({local}) if type({local}) is list else parts.append({local})", LineField(path)
            )
            self.source.line("out = bytearray()")

    def items(self, item: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        local = self._measured(value, path, nullable)
        if isinstance(item, Fixed) and letter:
            self._fixed_items(item, local, path, letter)
            return
        self._length(letter, path)
        item_name = self.name("item")
        with self.block(f"for {item_name} in {local}:", LineField(path)):
            if isinstance(item, StructOf):
                self.fields(item.struct, item_name, path)
            else:
                self.value(item, item_name, path)

    def _fixed_items(self, item: Fixed, local: str, path: str, letter: str) -> None:
        run, values, fields = self.take_run()
        packers = f"many_{run}{letter}{item.letter}".replace("?", "bool")
        self.source.scope[packers] = _Packers(run, letter, item.letter)
        count = "n + 1" if letter == "B" else "n"
        arguments = ", ".join([*values, count, f"*{local}"])
        self.source.line(f"{self._out} += {packers}[len({local})]({arguments})", *fields, LineField(path))

    def tags(self, tagged: list[Field], value: str, path: str) -> None:
        if not tagged:
            self.fixed("x", "", path)  # no tags: a zero byte
            return
        self.flush()
        section, count = self.name("section"), self.name("count")
        self.source.line(f"{section}, {count} = b'', 0")
        for field in tagged:
            self._tag(field, f"{value}.{field.name}", f"{path}.{field.name}".strip("."), section, count)
        self.fixed("B", count, path)
        self.flush()
        self.source.line(f"if {count}: {self._out} += {section}")

    def _tag(self, field: Field, value: str, path: str, section: str, count: str) -> None:
        with self.block(f"if {self._differs(field, value)}:", LineField(path)):
            outer, self._out = self._out, self.name("tag")
            self.source.line(f"{self._out} = bytearray()")
            self.value(field.type, value, path, field)
            self.flush()
            header, self._out, body = self.name("header"), outer, self._out
            self.source.line(f"{header} = bytearray()")
            self.source.line(f"uvarint({header}, {field.tag}); uvarint({header}, len({body}))")
            self.source.line(f"{section} += {header} + {body}; {count} += 1")

    def _differs(self, field: Field, value: str) -> str:
        """
        The condition on which a tag is written at all.
        """
        match field.type:
            case StructOf() if self.version in field.nullable:
                return "True"  # null is not the default
            case Fixed() | UuidType() | Text() | Binary() if field.default is not None:
                return f"{value} != {self.source.constant(field.default, f'default_{field.name}')}"
            case ListOf() if field.default is not None:
                return f"{value} != []"
            case _:
                return f"{value} is not None"
