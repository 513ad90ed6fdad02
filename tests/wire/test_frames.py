"""
Framing of a byte stream.
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
    However a stream is split, the frames are the same.
    """
    stream, framer, found = framed(*frames), Framer(), []
    for size in sizes:
        found += framer.feed(stream[:size])
        stream = stream[size:]
    found += framer.feed(stream)
    assert found == frames


def test_a_frame_is_complete_with_its_last_byte() -> None:
    """
    It is returned neither earlier nor later.
    """
    framer, stream = Framer(), framed(b"abc", b"", b"defg")
    ends = [index for index, byte in enumerate(stream) if framer.feed(bytes([byte]))]
    assert ends == [6, 10, 18]


def test_the_size_of_an_incomplete_frame_is_known() -> None:
    """
    It is known from the size field on until the frame is complete.
    """
    framer, stream = Framer(), framed(b"x" * 100)
    seen = []
    for piece in (stream[:3], stream[3:4], stream[4:50], stream[50:]):
        framer.feed(piece)
        seen.append(framer.declared)
    assert seen == [0, 100, 100, 0]


@pytest.mark.parametrize("size", [-1, -(1 << 31), 1001, (1 << 31) - 1])
def test_invalid_sizes_end_the_stream(size: int) -> None:
    """
    They are negative or above the limit; earlier frames are returned.
    """
    framer = Framer(1000)
    assert framer.feed(framed(b"x" * 1000) + struct.pack(">i", size)) == [b"x" * 1000]
    assert str(framer.failure) == f"Frame v0: size at byte 0: a frame of {size} bytes; at most 1000 are allowed"
    assert framer.feed(framed(b"y")) == []


def test_pieces_of_large_frames_are_copied_once() -> None:
    """
    They are stored unchanged until the frame is complete.
    """
    framer, piece = Framer(), b"x" * 1000
    framer.feed(struct.pack(">i", 1_000_000))
    for _ in range(999):
        assert framer.feed(piece) == []
    assert all(kept is piece for kept in framer._pieces[1:])
    assert framer.feed(piece) == [piece * 1000]
