"""
Writes, for a message in one version, the flat function that decodes it.

What comes out for MetadataRequest v4, shortened:

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

Lengths are checked before anything is allocated by them. Items are counted against a budget, because a message may
declare, within its bytes, millions of items that are tiny on the wire and large in memory. Of a request each costs its
handler microseconds, too, in which nobody else is served: so its budget grows with its size, as those of real clients
do, whose topics have names and whose partitions have offsets.
"""

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from kgateway.wire.layout import STRING_BYTES_MAX, Writer
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.source import Compiled, Step
from kgateway.wire.types import Fixed, Referenced, Text, WireType
from kgateway.wire.uuids import Uuid
from kgateway.wire.varints import more_uvarint, read_uvarint

ITEMS_MAX = 1_000_000
REQUEST_ITEMS = 20_000  # that any request may have, whatever its size
REQUEST_ITEM_BYTES = 16  # for each of which it may have one more
NUMBERS_AN_ITEM = 4  # so many make one in a request: lists of partitions are numbers of four bytes


def items_max(size: int) -> int:
    """
    How many items a request of so many bytes may have.
    """
    return min(REQUEST_ITEMS + size // REQUEST_ITEM_BYTES, ITEMS_MAX)


class _Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """
    By their number, how to unpack many of one fixed size.
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
    "new_bytes": bytes.__new__,  # past the check of a length that is known
    "Uuid": Uuid,
    "uvarint": read_uvarint,
    "more_uvarint": more_uvarint,
    "view": memoryview,
    "refuse": _refuse,
    "refuse_items": _refuse_items,
    "refuse_tag": _refuse_tag,
    "items_max": items_max,
    **{f"many_{letter}": _Unpackers(letter) for letter in "?bhiqHId"},
}


class DecoderWriter(Writer):
    """
    Writes `decode(data, pos) -> (message, end)`.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version, _SCOPE)
        self._is_request = message.__spec__.is_request
        self._wrap: list[str] = []  # what came out of the run as bytes and is a UUID

    def write(self) -> Compiled:
        with self.source.block("def decode(data, pos):"):
            self.source.line("size = len(data)")
            self.source.line(f"room = most = {'items_max(size)' if self._is_request else ITEMS_MAX}")
            self.nested(self.message, "message", "")
            self.flush()
            self.source.line("return message, pos")
        return self.source.compile("decode", f"decode {self.message.__spec__.name} v{self.version}")

    def flush(self) -> None:
        if not self.run:
            return
        letters, targets, steps = self.take_run()
        if letters == "B":
            self.source.line(f"{targets[0]} = data[pos]", *steps)
        else:
            unpack_from = self.source.packer(letters, "unpack_from")
            self.source.line(f"{', '.join(targets)}, = {unpack_from}(data, pos)", *steps)
        self.source.line(f"pos += {steps[-1].start + steps[-1].size}")
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
        if "." in value:  # fill a local, then attach it
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
        self.source.line(f"if n > 127: n, pos = more_uvarint(data, pos, n, {bits})", Step(path))
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
            self.source.line("if n > 127: n, pos = more_uvarint(data, pos, n)", Step(path))
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
        self.source.line(f"if n < 0 or end > size{too_long}: refuse(n, size - pos)", Step(path))
        form = {Text: "data[pos:end].decode()", Referenced: "view(data)[pos:end]"}.get(type(kind), "data[pos:end]")
        self.source.line(f"{value} = {form}", Step(path))
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
        self.source.line(f"if n < 0 or {needed} > size - pos: refuse(n, size - pos)", Step(path))
        match item:
            case Fixed(letter):
                self._charge(path, NUMBERS_AN_ITEM if self._is_request else 1)
                self.source.line(f"{value} = list(many_{letter}[n](data, pos))", Step(path))
                self.source.line(f"pos += n * {item.size}")
            case _:
                self._charge(path)
                self._loop(item, value, path)

    def _charge(self, path: str, together: int = 1) -> None:
        """
        Take `n` items from the budget, where some may count as one.
        """
        self.source.line("room -= n" if together == 1 else f"room -= n // {together}")
        self.source.line("if room < 0: refuse_items(most, size)", Step(path))

    def _loop(self, item: WireType, value: str, path: str) -> None:
        items, one = self.name("items"), self.name("item")
        self.source.line(f"{value} = {items} = []")
        with self.block("for _ in range(n):"):
            self.value(item, one, path)
            self.flush()
            self.source.line(f"{items}.append({one})")

    def tags(self, tagged: list[Field], value: str, path: str) -> None:
        place = f"{path}.tags" if path else "tags"
        tag, stop = self.name("tag"), self.name("stop")
        self.fixed("B", "n", place)
        with self.block("if n:"):
            self.source.line("if n > 127: n, pos = more_uvarint(data, pos, n)", Step(place))
            self._charge(place)
            with self.block("for _ in range(n):"):
                self.source.line(f"{tag}, pos = uvarint(data, pos)", Step(place))
                self.source.line("n, pos = uvarint(data, pos)", Step(place))
                self.source.line(f"{stop} = pos + n")
                self.source.line(f"if {stop} > size: refuse(n, size - pos)", Step(place))
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
            self.source.line(f"if pos != {stop}: refuse_tag({tag}, pos, {stop})", Step(path))
