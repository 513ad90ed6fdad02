"""
Frames in a stream.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.wire.frames import Framer


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 50), max_size=30))
def test_pieces_do_not_matter(frames: list[bytes], sizes: list[int]) -> None:
    """
    However a stream is cut, the same frames come out.
    """
    stream, framer, found = framed(*frames), Framer(), []
    for size in sizes:
        found += framer.feed(stream[:size])
        stream = stream[size:]
    found += framer.feed(stream)
    assert found == frames


def test_every_byte_alone() -> None:
    """
    A frame is given with its last byte, not earlier and not later.
    """
    framer, stream = Framer(), framed(b"abc", b"", b"defg")
    ends = [index for index, byte in enumerate(stream) if framer.feed(bytes([byte]))]
    assert ends == [6, 10, 18]


def test_a_begun_frame_is_known_by_its_size() -> None:
    """
    What a connection must find room for is told from the size on until the frame is complete.
    """
    framer, stream = Framer(), framed(b"x" * 100)
    seen = []
    for piece in (stream[:3], stream[3:4], stream[4:50], stream[50:]):
        framer.feed(piece)
        seen.append(framer.declared)
    assert seen == [0, 100, 100, 0]


@pytest.mark.parametrize("size", [-1, -(1 << 31), 1001, (1 << 31) - 1])
def test_sizes_out_of_bounds(size: int) -> None:
    """
    A size below zero or above the limit ends the stream; the frames before it are given.
    """
    framer = Framer(1000)
    assert framer.feed(framed(b"x" * 1000) + struct.pack(">i", size)) == [b"x" * 1000]
    assert str(framer.failure) == f"Frame v0: size at byte 0: a frame of {size} bytes; at most 1000 are allowed"
    assert framer.feed(framed(b"y")) == []


def test_large_frames_are_not_copied_again_and_again() -> None:
    """
    The pieces of a frame are kept as they came until it is complete.
    """
    framer, piece = Framer(), b"x" * 1000
    framer.feed(struct.pack(">i", 1_000_000))
    for _ in range(999):
        assert framer.feed(piece) == []
    assert all(kept is piece for kept in framer._pieces[1:])
    assert framer.feed(piece) == [piece * 1000]
