"""
Parsing of bytes into frames.
"""

import pytest
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, PingFrame, WindowUpdateFrame
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.grpc.frames import FrameReader, FrameTooLong, last_stream_of_goaway, window_update

_DATA = st.builds(DataFrame, st.integers(1, (1 << 31) - 1), st.binary(max_size=40))
_ENDING = st.builds(lambda data: DataFrame(1, data, flags=["END_STREAM"]), st.binary(max_size=40))
_PING = st.builds(lambda data: PingFrame(0, data), st.binary(min_size=8, max_size=8))


def _expected(frame: Frame) -> tuple[int, bytes]:
    if isinstance(frame, DataFrame) and not frame.flags:
        return frame.stream_id, frame.data
    return 0, frame.serialize()


@given(st.lists(st.one_of(_DATA, _ENDING, _PING)), st.lists(st.integers(1, 60)))
def test_plain_data_is_told_apart_however_it_is_cut(sent: list[Frame], cuts: list[int]) -> None:
    frames = FrameReader()
    rest = b"".join(frame.serialize() for frame in sent)
    found: list[tuple[int, bytes]] = []
    for cut in cuts:
        found += frames.feed(rest[:cut])
        rest = rest[cut:]
    found += frames.feed(rest)
    assert found == [_expected(frame) for frame in sent]


def test_data_of_no_stream_is_left_to_h2() -> None:
    frame = b"\0\0\2\0\0\0\0\0\0ab"
    assert list(FrameReader().feed(frame)) == [(0, frame)]


def test_a_frame_is_no_longer_than_agreed_on() -> None:
    assert len(next(FrameReader().feed(DataFrame(1, bytes(1 << 14)).serialize()))[1]) == 1 << 14
    with pytest.raises(FrameTooLong):
        list(FrameReader().feed(DataFrame(1, bytes((1 << 14) + 1)).serialize()[:9]))


def test_the_last_stream_is_read_of_a_goaway() -> None:
    assert last_stream_of_goaway(GoAwayFrame(0, last_stream_id=7, additional_data=b"calm").serialize()) == 7
    assert last_stream_of_goaway(b"\0\0\x08\x07\0\0\0\0\0\x80\0\0\7\0\0\0\0") == 7, "the reserved bit says nothing"
    assert last_stream_of_goaway(PingFrame(0, b"12345678").serialize()) is None
    assert last_stream_of_goaway(b"\0\0\0\x07\0\0\0\0\0") is None, "one that is cut short is left to h2"


def test_a_window_update_is_what_hyperframe_makes_of_it() -> None:
    assert window_update(5, 70_000) == WindowUpdateFrame(5, window_increment=70_000).serialize()
