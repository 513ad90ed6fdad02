"""
Numbers of variable length.
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
def test_unsigned_numbers_come_back(value: int) -> None:
    """
    What is written is read again, to its last byte.
    """
    data = written(varints.write_uvarint, value)
    assert varints.read_uvarint(data, 0) == (value, len(data))


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_signed_numbers_come_back(value: int) -> None:
    """
    The same for 32 bits with a sign.
    """
    data = written(varints.write_varint, value)
    assert varints.read_varint(data, 0) == (value, len(data))


@given(st.integers(0, (1 << 64) - 1))
def test_long_numbers_come_back(value: int) -> None:
    """
    The same for 64 bits, of which a decoder reads the first byte itself.
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
    The lowest seven bits come first, and signs are folded into the lowest bit.
    """
    assert written(write, value).hex() == data


@pytest.mark.parametrize(("write", "bits"), [(varints.write_varint, 31), (varints.write_varlong, 63)])
def test_numbers_that_do_not_fit(write: Any, bits: int) -> None:
    """
    A number beyond the type is refused, not cut.
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
def test_numbers_that_go_on(read: Any, data: str) -> None:
    """
    Too many bytes, or bits beyond the type, are an error.
    """
    with pytest.raises(ValueError, match="bits"):
        read(bytes.fromhex(data), 0)
