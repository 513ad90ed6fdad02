"""
Integers of variable length.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.wire import varints


def written(write: Callable[[bytearray, int], None], value: int) -> bytes:
    out = bytearray()
    write(out, value)
    return bytes(out)


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_numbers_round_trip(value: int) -> None:
    data = written(varints.write_uvarint, value)
    assert varints.read_uvarint(data, 0) == (value, len(data))


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_signed_numbers_round_trip(value: int) -> None:
    """
    They have 32 bits.
    """
    data = written(varints.write_varint, value)
    assert varints.read_varint(data, 0) == (value, len(data))


@given(st.integers(0, (1 << 64) - 1))
def test_long_numbers_round_trip(value: int) -> None:
    """
    They have 64 bits, of which a decoder reads the first byte itself.
    """
    data = written(varints.write_uvarint, value)
    if value > 127:
        assert varints.more_uvarint(data, 1, data[0], 64) == (value, len(data))
    else:
        assert data == bytes([value])


@pytest.mark.parametrize(
    ("write", "value", "data"),
    [
        (varints.write_uvarint, 127, "7f"),
        (varints.write_uvarint, 128, "8001"),
        (varints.write_uvarint, (1 << 32) - 1, "ffffffff0f"),
        (varints.write_varint, -1, "01"),
        (varints.write_varint, 1, "02"),
        (varints.write_varint, -(1 << 31), "ffffffff0f"),
        (varints.write_varlong, -(1 << 63), "ffffffffffffffffff01"),
    ],
)
def test_known_bytes(write: Any, value: int, data: str) -> None:
    """
    The lowest seven bits come first, and the sign is the lowest bit.
    """
    assert written(write, value).hex() == data


@pytest.mark.parametrize(("write", "bits"), [(varints.write_varint, 31), (varints.write_varlong, 63)])
def test_numbers_that_do_not_fit_are_refused(write: Any, bits: int) -> None:
    """
    They are not truncated.
    """
    for value in (1 << bits, -(1 << bits) - 1):
        with pytest.raises(ValueError, match="does not fit"):
            written(write, value)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (varints.read_uvarint, "ffffffff10"),
        (varints.read_uvarint, "808080808000"),
        (varints.read_varint, "ffffffff7f"),
    ],
)
def test_overlong_numbers_are_refused(read: Any, data: str) -> None:
    """
    They have too many bytes, or bits beyond the type.
    """
    with pytest.raises(ValueError, match="bits"):
        read(bytes.fromhex(data), 0)
