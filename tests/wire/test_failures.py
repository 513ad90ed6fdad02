"""
The two failures of the codec: malformed bytes, and values that cannot be encoded.
"""

from typing import Any

import pytest

from kgateway.wire.codec import decode, encode
from kgateway.wire.decoding import ITEMS_MAX
from kgateway.wire.errors import Malformed, Unencodable
from kgateway.wire.schema import Message
from tests.wire.tables import ID, Batches, Flat, Nested, Numbers, Pair, Signed, Tagged

_TEXT: Any = "text"
_NESTED: Any = [[b"x"]]


def _flat(**wrong: Any) -> Flat:
    right: dict[str, Any] = {"a": 0, "b": 0, "c": 0, "d": 0, "e": 0, "f": 0.0, "g": True, "h": ID}
    return Flat(**{**right, **wrong})


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
        (Pair, 2, "0001 03 01 01 00 01 01", "Pair v2: items at byte 3: 2 declared, with 5 bytes left"),
        (Pair, 2, "0001 02 00 01 00 00", "Pair v2: items.name at byte 4: null is not allowed here"),
        (Pair, 2, "0001 ffffffffff", "a variable-length number extends beyond 32 bits"),
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
def test_malformed_names_field_and_position(message: type[Message], version: int, data: str, words: str) -> None:
    """
    It also names message and version.
    """
    with pytest.raises(Malformed) as failure:
        decode(message, version, bytes.fromhex(data))
    assert words in str(failure.value)
    assert failure.value.field.message == message.__name__


def test_strings_are_limited_as_in_kafka() -> None:
    """
    The compact format could have more than 32767 bytes, but Kafka refuses them.
    """
    item = Pair(code=1, items=[Pair.Item(name="x" * 32767, numbers=[])])
    assert decode(Pair, 2, encode(item, 2)) == item
    with pytest.raises(Unencodable, match=r"items\.name: a string of more than 32767 bytes"):
        encode(Pair(code=1, items=[Pair.Item(name="x" * 32768, numbers=[])]), 2)
    longer = bytes.fromhex("0001 02 818002") + b"x" * 32768 + bytes.fromhex("01 00 00")
    with pytest.raises(Malformed, match="32768 declared"):
        decode(Pair, 2, longer)


def test_items_are_limited() -> None:
    """
    Tiny items can take no more memory than a million of them, however they are spread over lists.
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


def test_numbers_count_as_items() -> None:
    """
    A list of a million and one bytes is refused.
    """
    assert len(decode(Numbers, 0, bytes.fromhex("c1843d") + bytes(ITEMS_MAX) + b"\0").numbers) == ITEMS_MAX
    with pytest.raises(Malformed, match="numbers at byte 3: more than 1000000 items"):
        decode(Numbers, 0, bytes.fromhex("c2843d") + bytes(ITEMS_MAX + 1) + b"\0")


def test_tags_count_as_items() -> None:
    """
    A million and one tags are refused, even unknown ones.
    """
    frame = b"\x01" + bytes.fromhex("c1843d") + b"\x7f\0" * (ITEMS_MAX + 1)
    with pytest.raises(Malformed, match="tags at byte 4: more than 1000000 items"):
        decode(Numbers, 0, frame)


def test_malformed_does_not_keep_the_frame_alive() -> None:
    """
    Inner exceptions are not chained.
    """
    with pytest.raises(Malformed) as failure:
        decode(Pair, 1, b"")
    assert failure.value.__context__ is None


def test_any_negative_length_is_null() -> None:
    """
    As in Kafka, -2 is null where null is allowed, and refused elsewhere.
    """
    assert decode(Pair, 1, bytes.fromhex("0001 fffffffe")).items is None
    assert decode(Nested, 0, bytes.fromhex("fe 0001 00 00")).one is None
    with pytest.raises(Malformed, match="null is not allowed here"):
        decode(Pair, 1, bytes.fromhex("0001 00000001 fffe 00000000"))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (_flat(c=1 << 40), "Flat v0: c: 'i' format requires"),
        (_flat(d=None), "Flat v0: d: null is not allowed here"),
        (_flat(h="id"), "Flat v0: h: argument for 's' must be a bytes object"),
        (
            Batches(before=0, records=_TEXT, after=0),
            "Batches v0: records: records are bytes, a view or a list of these, not str",
        ),
        (
            Batches(before=0, records=_NESTED, after=0),
            "Batches v0: records: records are bytes, a view or a list of these, not list",
        ),
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
    A value that cannot be encoded has its own error.
    """
    with pytest.raises(Unencodable) as failure:
        encode(value, 1 if isinstance(value, Pair) else 0)
    assert words in str(failure.value)
