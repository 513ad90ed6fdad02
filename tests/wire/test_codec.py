"""
The engine, on small tables: known bytes, and one failure for all that is wrong.
"""

import sys
from typing import Any

import pytest

from kgateway.wire.codec import decode, decoder, encode, encoder
from kgateway.wire.decoding import ITEMS_MAX
from kgateway.wire.malformed import Malformed, Unencodable
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, f64, i8, i16, i32, i64, u16, varint, varlong
from kgateway.wire.uuids import Uuid

ID = Uuid(range(16))


class Pair(Message, versions="0-2", flexible="2+"):
    """
    Strings and lists in both forms of their lengths.
    """

    class Item(Struct):
        name: str
        numbers: list[i32]

    code: i16
    items: list[Item] | None


class Flat(Message, versions="0"):
    """
    Every type of fixed size.
    """

    a: i8
    b: i16
    c: i32
    d: i64
    e: u16
    f: f64
    g: bool
    h: Uuid


class Tagged(Message, versions="0", flexible="0+"):
    """
    Tags of several types, declared out of their order.
    """

    class Inner(Struct):
        number: i32

    plain: i8
    second: str = v(tag=1)
    first: i32 = v(tag=0, default=-1)
    absent: Inner | None = v(tag=5)
    null: Inner | None = v(tag=6, nullable="0+")


class Nested(Message, versions="0", flexible="0+"):
    """
    A struct that may be null, and one that may not.
    """

    class Inner(Struct):
        number: i16

    one: Inner | None
    other: Inner


class Batches(Message, versions="0-1", flexible="1+"):
    """
    Records between other fields.
    """

    before: i16
    records: Records | None
    after: i16


class Signed(Message, versions="0", zigzag=True):
    """
    The inside of a record: all lengths are signed varints.
    """

    small: varint
    large: varlong
    key: bytes | None
    names: list[str]


def test_lengths_are_classic_before_the_flexible_version() -> None:
    """
    Strings have i16 lengths and lists i32 counts; null is -1.
    """
    value = Pair(code=1, items=[Pair.Item(name="ab", numbers=[7])])
    assert encode(value, 1) == bytes.fromhex("0001 00000001 0002 6162 00000001 00000007")
    assert encode(Pair(code=1, items=None), 1) == bytes.fromhex("0001 ffffffff")


def test_lengths_are_compact_from_the_flexible_version_on() -> None:
    """
    Lengths are varints, one more than they say; null is 0; each struct ends in its tags.
    """
    value = Pair(code=1, items=[Pair.Item(name="ab", numbers=[7])])
    assert encode(value, 2) == bytes.fromhex("0001 02 03 6162 02 00000007 00 00")
    assert encode(Pair(code=1, items=None), 2) == bytes.fromhex("0001 00 00")


def test_fixed_sizes() -> None:
    """
    Numbers are big-endian, a bool is a byte, a UUID is sixteen.
    """
    value = Flat(a=-1, b=2, c=-3, d=4, e=65535, f=1.5, g=True, h=ID)
    data = bytes.fromhex("ff 0002 fffffffd 0000000000000004 ffff 3ff8000000000000 01") + ID
    assert encode(value, 0) == data
    assert decode(Flat, 0, data) == value


def test_any_byte_but_zero_is_true() -> None:
    """
    A bool is read as Kafka reads it.
    """
    data = bytearray(encode(Flat(a=0, b=0, c=0, d=0, e=0, f=0.0, g=True, h=ID), 0))
    data[25] = 7
    assert decode(Flat, 0, bytes(data)).g is True


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 126, 127, 128, 200, 20_000])
@pytest.mark.parametrize("version", [1, 2])
def test_lists_of_every_length(count: int, version: int) -> None:
    """
    Neither the borders of the compact form nor those of what is kept compiled matter.
    """
    value = Pair(code=1, items=[Pair.Item(name="x" * count, numbers=list(range(count)))] * min(count, 300))
    assert decode(Pair, version, encode(value, version)) == value


def test_tags_are_written_in_their_order_and_only_when_set() -> None:
    """
    What has its default is left out; a null that is not the default is a byte of zero.
    """
    none = Tagged(plain=1)
    assert encode(none, 0) == bytes.fromhex("01 01 06 01 00")
    value = Tagged(plain=1, second="a", first=2, absent=Tagged.Inner(number=3), null=Tagged.Inner(number=4))
    expected = "01 04 00 04 00000002 01 02 0261 05 05 0000000300 06 06 01 00000004 00"
    assert encode(value, 0) == bytes.fromhex(expected)
    assert decode(Tagged, 0, bytes.fromhex(expected)) == value


def test_unknown_tags_are_skipped() -> None:
    """
    What a newer peer adds does not disturb.
    """
    assert decode(Tagged, 0, bytes.fromhex("01 02 8101 03 aabbcc 00 04 00000002")) == Tagged(plain=1, first=2)


def test_structs_may_be_null() -> None:
    """
    A nullable struct stands behind a byte, another does not (KIP-893).
    """
    null, full = "ff 0001 00 00", "01 0002 00 0001 00 00"
    assert decode(Nested, 0, bytes.fromhex(null)) == Nested(one=None, other=Nested.Inner(number=1))
    value = Nested(one=Nested.Inner(number=2), other=Nested.Inner(number=1))
    assert encode(value, 0) == bytes.fromhex(full)
    assert decode(Nested, 0, bytes.fromhex(full)) == value


def test_signed_lengths() -> None:
    """
    Inside a record, numbers and lengths are zigzag varints and no tags follow.
    """
    value = Signed(small=-2, large=1 << 40, key=None, names=["a"])
    data = bytes.fromhex("03 808080808040 01 02 02 61")
    assert encode(value, 0) == data
    assert decode(Signed, 0, data) == value


@pytest.mark.parametrize("version", [0, 1])
def test_records_are_not_copied(version: int) -> None:
    """
    Decoded, they are a view of the frame; encoded, the very object is among the buffers.
    """
    frame = encode(Batches(before=1, records=b"batch", after=2), version)
    records = decode(Batches, version, frame).records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    parts = encoder(Batches, version)(Batches(before=1, records=records, after=2))
    assert any(part is records for part in parts)
    assert b"".join(parts) == frame


@pytest.mark.parametrize("version", [0, 1])
def test_records_may_be_many_buffers(version: int) -> None:
    """
    A list of buffers is written as their sum, each by reference.
    """
    pieces: list[Any] = [b"ba", memoryview(b"tc"), b"h"]
    parts = encoder(Batches, version)(Batches(before=1, records=pieces, after=2))
    assert all(any(part is piece for part in parts) for piece in pieces)
    assert b"".join(parts) == encode(Batches(before=1, records=b"batch", after=2), version)


def test_messages_are_read_from_the_middle_of_a_frame() -> None:
    """
    A decoder starts at a position and says where it ended.
    """
    body = encode(Pair(code=1, items=[]), 1)
    assert decoder(Pair, 1)(b"head" + body + b"tail", 4) == (Pair(code=1, items=[]), 4 + len(body))


def test_versions_that_a_message_lacks() -> None:
    """
    Asking for one is a mistake of the caller, not of the peer.
    """
    with pytest.raises(LookupError, match="Pair has no version 9"):
        decoder(Pair, 9)


@pytest.mark.parametrize(
    ("message", "version", "data", "words"),
    [
        (Pair, 1, "00", "Pair v1: code at byte 0: the bytes end here"),
        (Pair, 1, "0001 0000", "Pair v1: items at byte 2: the bytes end here"),
        (Pair, 1, "0001 7fffffff 00", "Pair v1: items at byte 6: 2147483647 declared, with 1 bytes left"),
        (Pair, 1, "0001 00000001 0005 61", "Pair v1: items at byte 6: 1 declared, with 3 bytes left"),
        (Pair, 1, "0001 00000001 0005 616161616161", "Pair v1: items.numbers at byte 13: the bytes end here"),
        (Pair, 1, "0001 00000001 0009 616161616161", "Pair v1: items.name at byte 8: 9 declared, with 6 bytes left"),
        (Pair, 1, "0001 00000001 ffff 00000000", "Pair v1: items.name at byte 8: null is not allowed here"),
        (Pair, 1, "0001 00000001 0002 ff61 00000000", "Pair v1: items.name at byte 8: not UTF-8: invalid start byte"),
        (Pair, 1, "0001 00000001 0001 61 ffffffff", "Pair v1: items.numbers at byte 13: null is not allowed here"),
        (Pair, 1, "0001 00000000 00", "Pair v1: the end at byte 6: 1 bytes are left over"),
        (Pair, 2, "0001 02 00 01 00 00", "Pair v2: items.name at byte 4: null is not allowed here"),
        (Pair, 2, "0001 ffffffffff", "a variable-length number goes on beyond 32 bits"),
        (Pair, 2, "0001 ffffffff1f", "a variable-length number is larger than 32 bits"),
        (Pair, 2, "0001 01 01 00 05", "Pair v2: tags at byte 6: 5 declared, with 0 bytes left"),
        (Flat, 0, "ff 0002 fffffffd 00000000", "Flat v0: d at byte 7: the bytes end here"),
        (Tagged, 0, "01 01 00 05 0000000200", "tag 0 should end at byte 9 and ends at 8"),
        (Tagged, 0, "01 01 00 03 00000002", "tag 0 should end at byte 7 and ends at 8"),
        (Tagged, 0, "01 01 01 01 00", "Tagged v0: second at byte 5: null is not allowed here"),
        (Signed, 0, "ffffffff1f 00 01 00", "a variable-length number is larger than 32 bits"),
        (Signed, 0, "00 ffffffffffffffffff03 01 00", "a variable-length number is larger than 64 bits"),
        (Signed, 0, "00 00 01 01", "Signed v0: names at byte 4: null is not allowed here"),
    ],
)
def test_malformed_names_what_is_wrong(message: type[Message], version: int, data: str, words: str) -> None:
    """
    The failure names message, version, field and position.
    """
    with pytest.raises(Malformed) as failure:
        decode(message, version, bytes.fromhex(data))
    assert words in str(failure.value)
    assert failure.value.place.message == message.__name__


def test_strings_keep_kafkas_bound() -> None:
    """
    The compact form could say more than 32767 bytes, and Kafka refuses it.
    """
    item = Pair(code=1, items=[Pair.Item(name="x" * 32767, numbers=[])])
    assert decode(Pair, 2, encode(item, 2)) == item
    with pytest.raises(Unencodable, match=r"items\.name: a string of more than 32767 bytes"):
        encode(Pair(code=1, items=[Pair.Item(name="x" * 32768, numbers=[])]), 2)
    longer = bytes.fromhex("0001 02 818002") + b"x" * 32768 + bytes.fromhex("01 00 00")
    with pytest.raises(Malformed, match="32768 declared"):
        decode(Pair, 2, longer)


def test_items_have_a_budget() -> None:
    """
    Tiny items cannot be made into more memory than a million of them take, however they are spread over lists.
    """
    item = bytes.fromhex("01 01 00")  # an empty name, no numbers, no tags

    def frame(count: int) -> bytes:
        varints = bytearray()
        number = count + 1
        while number > 127:
            varints.append(number & 127 | 128)
            number >>= 7
        return b"\0\1" + bytes([*varints, number]) + item * count + b"\0"

    assert len(decode(Pair, 2, frame(ITEMS_MAX)).items or []) == ITEMS_MAX
    with pytest.raises(Malformed, match="more than 1000000 items"):
        decode(Pair, 2, frame(ITEMS_MAX + 1))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Pair(code=1 << 15, items=None), "Pair v1: code: 'h' format requires"),
        (Pair(code=1, items=[Pair.Item(name=None, numbers=[])]), "Pair v1: items.name: null is not allowed"),  # type: ignore[arg-type]
        (Pair(code=1, items=[Pair.Item(name="", numbers=None)]), "Pair v1: items.numbers: null is not allowed"),  # type: ignore[arg-type]
        (Pair(code=None, items=[]), "Pair v1: code: "),  # type: ignore[arg-type]
        (Pair(code=1, items=[Pair.Item(name="\ud800", numbers=[])]), "Pair v1: items.name: 'utf-8' codec can't encode"),
        (Pair(code=1, items=[Pair.Item(name="x" * 40_000, numbers=[])]), "Pair v1: items.name: 'h' format requires"),
        (Pair(code=1, items=["x"]), "Pair v1: items.name: 'str' object has no attribute"),  # type: ignore[list-item]
    ],
)
def test_unencodable_names_the_field(value: Message, words: str) -> None:
    """
    A value without a form on the wire is told apart from malformed bytes, and its field is named.
    """
    with pytest.raises(Unencodable) as failure:
        encode(value, 1)
    assert words in str(failure.value)


def test_functions_are_written_once() -> None:
    """
    The second asker gets the function that the first one had written.
    """
    assert decoder(Pair, 1) is decoder(Pair, 1)
    assert encoder(Pair, 1) is encoder(Pair, 1)


def test_importing_a_message_does_not_import_twisted() -> None:
    """
    The codec stands alone.
    """
    import subprocess

    code = "import sys, kgateway.messages.produce, kgateway.wire.codec; sys.exit('twisted' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
