"""
Varints decoded many at a time, compared with the functions that read one.
"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.records.varint_columns import TooLong, read_varints
from kgateway.wire.varints import read_varint, write_varlong

_SHORT = st.binary(min_size=1, max_size=11) | st.integers(0, 11).map(lambda count: b"\xff" * count + b"\1")


@given(_SHORT)
@example(b"\x80\x80\x80\x80\x10")  # one bit too many
@example(b"\xff\xff\xff\xff\x0f")
@example(b"\xff" * 5 + b"\0")
@example(b"\x80" * 5 + b"\0")
def test_columns_equal_single_reads(data: bytes) -> None:
    """
    Any bytes are the same number, or none, for both.
    """
    try:
        expected = read_varint(data, 0)
    except (IndexError, ValueError):
        with pytest.raises((IndexError, TooLong)):
            read_varints(np.frombuffer(data, np.uint8), np.array([0]))
    else:
        values, after = read_varints(np.frombuffer(data, np.uint8), np.array([0]))
        assert (values[0], after[0]) == expected


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))
@example([1 << 62, -(1 << 63), (1 << 63) - 1, 0, -1])
def test_long_numbers(numbers: list[int]) -> None:
    """
    Numbers of 64 bits are read at their positions.
    """
    data, starts = bytearray(), []
    for number in numbers:
        starts.append(len(data))
        write_varlong(data, number)
    values, after = read_varints(np.frombuffer(bytes(data), np.uint8), np.array(starts, np.int64), bits=64)
    assert values.tolist() == numbers
    assert after.tolist() == [*starts[1:], len(data)] if numbers else not len(after)


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\2", b"\xff" * 10 + b"\1"])
def test_more_than_64_bits_are_refused(data: bytes) -> None:
    with pytest.raises(TooLong, match="64 bits"):
        read_varints(np.frombuffer(data, np.uint8), np.array([0]), bits=64)
