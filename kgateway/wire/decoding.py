"""
Generates, for a message in one version, the flat function that decodes it.

What is generated for MetadataRequest v4, shortened:

    def decode(data, pos):
        size = len(data)
        message = new(MetadataRequest)
        (n,) = unpack_from_i(data, pos)
        pos += 4
        if n < 0:
            message.topics = None
        else:
            if n > size - pos: refuse(n, size - pos)
            ...

Lengths are checked before anything is allocated by them. Items are counted against a budget, because a few bytes can
declare millions of items that are tiny on the wire and large in memory. Each item of a request also costs its handler
microseconds, in which nobody else is served. So the budget of a request grows with its size, as the requests of real
clients do, whose topics have names and whose partitions have offsets.
"""

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from kgateway.wire.codec_writer import STRING_BYTES_MAX, CodecWriter
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.source import Compiled, LineField
from kgateway.wire.types import Fixed, Referenced, Text, WireType
from kgateway.wire.uuids import Uuid
from kgateway.wire.varints import more_uvarint, read_uvarint

ITEMS_MAX = 1_000_000
REQUEST_ITEMS = 20_000  # for any request, whatever its size
REQUEST_ITEM_BYTES = 16  # each sixteen bytes of a request allow one item more
NUMBERS_AN_ITEM = 4  # four numbers count as one item of a request: lists of partitions are numbers of four bytes


class _Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """
    The functions that unpack many numbers of one type, by how many.
    """

    def __init__(self, letter: str) -> None:
        self._letter = letter

    def __missing__(self, count: int) -> Callable[..., tuple[Any, ...]]:
        unpack_from = struct.Struct(f">{count}{self._letter}").unpack_from
        if count <= 64:
            self[count] = unpack_from
        return unpack_from


def _refuse(declared: int, left: int) -> NoReturn:
    if declared < 0:
        raise ValueError("null is not allowed here")
    raise ValueError(f"{declared} declared, with {left} bytes left")


def _refuse_items(room: int, size: int) -> NoReturn:
    raise ValueError(f"more than {room} items in one message of {size} bytes")


def _refuse_tag(tag: int, pos: int, stop: int) -> NoReturn:
    raise ValueError(f"tag {tag} should end at byte {stop} and ends at {pos}")


_SCOPE: dict[str, object] = {
    "new": object.__new__,
    "new_bytes": bytes.__new__,  # without the check of a length that is known
    "Uuid": Uuid,
    "uvarint": read_uvarint,
    "more_uvarint": more_uvarint,
    "view": memoryview,
    "refuse": _refuse,
    "refuse_items": _refuse_items,
    "refuse_tag": _refuse_tag,
    **{f"many_{letter}": _Unpackers(letter) for letter in "?bhiqHId"},
}


class DecoderWriter(CodecWriter):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version, _SCOPE)
        self._is_request = message.__spec__.is_request
        self._wrap: list[str] = []  # targets of the run that are bytes and become UUIDs

    def write(self) -> Compiled:
        with self.source.block("def decode(data, pos):"):
            self.source.line("size = len(data)")
            of_request = f"min({REQUEST_ITEMS} + size // {REQUEST_ITEM_BYTES}, {ITEMS_MAX})"
            self.source.line(f"room = most = {of_request if self._is_request else ITEMS_MAX}")
            self.nested(self.message, "message", "")
            self.flush()
            self.source.line("return message, pos")
        return self.source.compile("decode", f"decode {self.message.__spec__.name} v{self.version}")

    def flush(self) -> None:
        if not self.run:
            return
        letters, targets, fields = self.take_run()
        if letters == "B":
            self.source.line(f"{targets[0]} = data[pos]", *fields)
        else:
            unpack_from = self.source.packer(letters, "unpack_from")
            self.source.line(f"{', '.join(targets)}, = {unpack_from}(data, pos)", *fields)
        self.source.line(f"pos += {fields[-1].start + fields[-1].size}")
        for target in self._wrap:
            self.source.line(f"{target} = new_bytes(Uuid, {target})")
        self._wrap = []

    def absent(self, field: Field, value: str) -> None:
        default = field.default
        if default == ():
            self.source.line(f"{value} = []")
        else:
            plain = default is None or type(default) in (bool, int, float, str)
            self.source.line(f"{value} = {repr(default) if plain else self.source.constant(default, field.name)}")

    def nested(self, kind: type[Struct], value: str, path: str) -> None:
        if "." in value:  # fill a local variable, then attach it
            local = self.name("inner")
            self.nested(kind, local, path)
            self.flush()
            self.source.line(f"{value} = {local}")
            return
        self.source.line(f"{value} = new({self.source.constant(kind, kind.__name__)})")
        self.fields(kind, value, path)

    def nullable_struct(self, kind: type[Struct], value: str, path: str, null: int) -> None:
        self.fixed("b", "n", path)
        with self.block(f"if n <= {null}:"):
            self.source.line(f"{value} = None")
        with self.block("else:"):
            self.nested(kind, value, path)

    def uuid(self, value: str, path: str) -> None:
        self.fixed("16s", value, path)
        self._wrap.append(value)

    def varint(self, bits: int, value: str, path: str) -> None:
        self.fixed("B", "n", path)
        self.flush()
        self.source.line(f"if n > 127: n, pos = more_uvarint(data, pos, n, {bits})", LineField(path))
        self.source.line(f"{value} = n >> 1 ^ -(n & 1)")

    def _length(self, letter: str | None, path: str) -> None:
        """
        Leave a length in `n`, -1 for null.
        """
        if letter is None:
            self.varint(32, "n", path)
            return
        self.fixed(letter, "n", path)
        self.flush()
        if letter == "B":
            self.source.line("if n > 127: n, pos = more_uvarint(data, pos, n)", LineField(path))
            self.source.line("n -= 1")

    def sized(self, kind: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        self._length(letter, path)
        if nullable:
            with self.block("if n < 0:"):
                self.source.line(f"{value} = None")
            with self.block("else:"):
                self._body(kind, value, path)
        else:
            self._body(kind, value, path)

    def _body(self, kind: WireType, value: str, path: str) -> None:
        self.source.line("end = pos + n")
        too_long = f" or n > {STRING_BYTES_MAX}" if isinstance(kind, Text) else ""
        self.source.line(f"if n < 0 or end > size{too_long}: refuse(n, size - pos)", LineField(path))
        form = {Text: "data[pos:end].decode()", Referenced: "view(data)[pos:end]"}.get(type(kind), "data[pos:end]")
        self.source.line(f"{value} = {form}", LineField(path))
        self.source.line("pos = end")

    def items(self, item: WireType, value: str, path: str, nullable: bool, letter: str | None) -> None:
        self._length(letter, path)
        if nullable:
            with self.block("if n < 0:"):
                self.source.line(f"{value} = None")
            with self.block("else:"):
                self._items(item, value, path)
        else:
            self._items(item, value, path)

    def _items(self, item: WireType, value: str, path: str) -> None:
        least = max(1, self.least_size(item))
        needed = "n" if least == 1 else f"n * {least}"
        self.source.line(f"if n < 0 or {needed} > size - pos: refuse(n, size - pos)", LineField(path))
        match item:
            case Fixed(letter):
                self._charge(path, NUMBERS_AN_ITEM if self._is_request else 1)
                self.source.line(f"{value} = list(many_{letter}[n](data, pos))", LineField(path))
                self.source.line(f"pos += n * {item.size}")
            case _:
                self._charge(path)
                self._loop(item, value, path)

    def _charge(self, path: str, together: int = 1) -> None:
        """
        Take `n` items from the budget. `together` of them count as one.
        """
        self.source.line("room -= n" if together == 1 else f"room -= n // {together}")
        self.source.line("if room < 0: refuse_items(most, size)", LineField(path))

    def _loop(self, item: WireType, value: str, path: str) -> None:
        items, item_name = self.name("items"), self.name("item")
        self.source.line(f"{value} = {items} = []")
        with self.block("for _ in range(n):"):
            self.value(item, item_name, path)
            self.flush()
            self.source.line(f"{items}.append({item_name})")

    def tags(self, tagged: list[Field], value: str, path: str) -> None:
        tags_path = f"{path}.tags" if path else "tags"
        tag, stop = self.name("tag"), self.name("stop")
        self.fixed("B", "n", tags_path)
        with self.block("if n:"):
            self.source.line("if n > 127: n, pos = more_uvarint(data, pos, n)", LineField(tags_path))
            self._charge(tags_path)
            with self.block("for _ in range(n):"):
                self.source.line(f"{tag}, pos = uvarint(data, pos)", LineField(tags_path))
                self.source.line("n, pos = uvarint(data, pos)", LineField(tags_path))
                self.source.line(f"{stop} = pos + n")
                self.source.line(f"if {stop} > size: refuse(n, size - pos)", LineField(tags_path))
                for field in tagged:
                    self._tag(field, f"{value}.{field.name}", f"{path}.{field.name}".strip("."), tag, stop)
                if not tagged:
                    self.source.line(f"pos = {stop}")
                else:
                    self.source.line(f"if {tag} not in {tuple(f.tag for f in tagged)}: pos = {stop}")

    def _tag(self, field: Field, value: str, path: str, tag: str, stop: str) -> None:
        with self.block(f"if {tag} == {field.tag}:"):
            self.value(field.type, value, path, field)
            self.flush()
            self.source.line(f"if pos != {stop}: refuse_tag({tag}, pos, {stop})", LineField(path))
