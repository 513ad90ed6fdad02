"""
The codec on small tables with known bytes.
"""

import sys
from typing import Any

import pytest

from kgateway.wire.codec import decode, decoder, encode, encoder
from kgateway.wire.uuids import Uuid
from tests.wire.tables import ID, Batches, Flat, Nested, Pair, Signed, Tagged


def test_lengths_are_classic_before_the_flexible_version() -> None:
    """
    Strings have i16 lengths and lists i32 counts; null is -1.
    """
    value = Pair(code=1, items=[Pair.Item(name="ab", numbers=[7])])
    assert encode(value, 1) == bytes.fromhex("0001 00000001 0002 6162 00000001 00000007")
    assert encode(Pair(code=1, items=None), 1) == bytes.fromhex("0001 ffffffff")


def test_lengths_are_compact_from_the_flexible_version_on() -> None:
    """
    Lengths are varints, increased by one; null is 0; each struct ends with its tags.
    """
    value = Pair(code=1, items=[Pair.Item(name="ab", numbers=[7])])
    assert encode(value, 2) == bytes.fromhex("0001 02 03 6162 02 00000007 00 00")
    assert encode(Pair(code=1, items=None), 2) == bytes.fromhex("0001 00 00")


def test_types_of_fixed_size() -> None:
    """
    Numbers are big-endian, a bool is one byte, a UUID sixteen.
    """
    value = Flat(a=-1, b=2, c=-3, d=4, e=65535, f=1.5, g=True, h=ID)
    data = bytes.fromhex("ff 0002 fffffffd 0000000000000004 ffff 3ff8000000000000 01") + ID
    assert encode(value, 0) == data
    assert decode(Flat, 0, data) == value
    assert type(decode(Flat, 0, data).h) is Uuid


def test_any_byte_except_zero_is_true() -> None:
    """
    Kafka reads a bool likewise.
    """
    data = bytearray(encode(Flat(a=0, b=0, c=0, d=0, e=0, f=0.0, g=True, h=ID), 0))
    data[25] = 7
    assert decode(Flat, 0, bytes(data)).g is True


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 126, 127, 128, 200, 20_000])
@pytest.mark.parametrize("version", [1, 2])
def test_lists_of_every_length(count: int, version: int) -> None:
    """
    Neither compact lengths nor cached functions change at a border.
    """
    value = Pair(code=1, items=[Pair.Item(name="x" * count, numbers=list(range(count)))] * min(count, 30))
    assert decode(Pair, version, encode(value, version)) == value


def test_tags_are_sorted_and_omitted_if_default() -> None:
    """
    A null that is not the default is a zero byte.
    """
    none = Tagged(plain=1)
    assert encode(none, 0) == bytes.fromhex("01 01 06 01 00")
    value = Tagged(plain=1, second="a", first=2, absent=Tagged.Inner(number=3), null=Tagged.Inner(number=4))
    expected = "01 04 00 04 00000002 01 02 0261 05 05 0000000300 06 06 01 00000004 00"
    assert encode(value, 0) == bytes.fromhex(expected)
    assert decode(Tagged, 0, bytes.fromhex(expected)) == value


def test_unknown_tags_are_skipped() -> None:
    """
    A newer peer may add them.
    """
    assert decode(Tagged, 0, bytes.fromhex("01 02 8101 03 aabbcc 00 04 00000002")) == Tagged(plain=1, first=2)


def test_nullable_structs_have_a_marker_byte() -> None:
    """
    Other structs have none (KIP-893).
    """
    null, full = "ff 0001 00 00", "01 0002 00 0001 00 00"
    assert decode(Nested, 0, bytes.fromhex(null)) == Nested(one=None, other=Nested.Inner(number=1))
    value = Nested(one=Nested.Inner(number=2), other=Nested.Inner(number=1))
    assert encode(value, 0) == bytes.fromhex(full)
    assert decode(Nested, 0, bytes.fromhex(full)) == value


def test_lengths_inside_records_are_signed() -> None:
    """
    Numbers and lengths are zigzag varints, and no tags follow.
    """
    value = Signed(small=-2, large=1 << 40, key=None, names=["a"])
    data = bytes.fromhex("03 808080808040 01 02 02 61")
    assert encode(value, 0) == data
    assert decode(Signed, 0, data) == value


@pytest.mark.parametrize("version", [0, 1])
def test_records_are_not_copied(version: int) -> None:
    """
    Decoded, they are a view of the frame; encoded, the same object is among the buffers.
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
    A list of buffers is written as their concatenation, each by reference.
    """
    pieces: list[Any] = [b"ba", memoryview(b"tc"), b"h"]
    parts = encoder(Batches, version)(Batches(before=1, records=pieces, after=2))
    assert all(any(part is piece for part in parts) for piece in pieces)
    assert b"".join(parts) == encode(Batches(before=1, records=b"batch", after=2), version)


def test_views_count_bytes() -> None:
    """
    The length of a view with larger items is in bytes.
    """
    view = memoryview(bytes(8)).cast("i")
    assert encode(Batches(before=1, records=view, after=2), 0) == bytes.fromhex("0001 00000008") + bytes(8) + b"\0\2"


def test_messages_are_read_within_a_frame() -> None:
    """
    A decoder starts at a position and returns its end.
    """
    body = encode(Pair(code=1, items=[]), 1)
    assert decoder(Pair, 1)(b"head" + body + b"tail", 4) == (Pair(code=1, items=[]), 4 + len(body))


def test_unknown_versions_are_an_error_of_the_caller() -> None:
    """
    The peer is not blamed.
    """
    with pytest.raises(LookupError, match="Pair has no version 9"):
        decoder(Pair, 9)


def test_functions_are_generated_once() -> None:
    """
    The second call returns the function of the first.
    """
    assert decoder(Pair, 1) is decoder(Pair, 1)
    assert encoder(Pair, 1) is encoder(Pair, 1)


def test_importing_a_message_does_not_import_twisted() -> None:
    import subprocess

    code = "import sys, kgateway.messages.produce, kgateway.wire.codec; sys.exit('twisted' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
