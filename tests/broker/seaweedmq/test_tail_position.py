"""
Which responses of a broker show the messages after a known one.
"""

from collections.abc import Sequence

import pytest

from kgateway.broker.seaweed.protos.messaging_pb2 import DataMessage, FetchMessageResponse
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.tail.tail_position import NOTHING_BEFORE, TailPosition


def response(times: Sequence[int], next_offset: int, window: int) -> FetchMessageResponse:
    """
    Messages of these times, out of the memory of a broker whose newest window begins with the message `window`.
    """
    messages = [DataMessage(key=b"k", value=b"%d" % time, ts_ns=time) for time in times]
    return FetchMessageResponse(messages=messages, next_offset=next_offset, log_start_offset=window)


def found(position: TailPosition, told: FetchMessageResponse, start: int, *, is_wide: bool = False) -> list[int]:
    """
    The times of the messages that are believed to follow.
    """
    messages = position.following(told, start, is_wide=is_wide)
    assert [message.offset for message in messages] == list(
        range(position.next_message, position.next_message + len(messages))
    )
    return [message.ts_ns for message in messages]


KNOWN = TailPosition(10, 109)  # the message 9 has the time 109


def test_messages_get_the_numbers_after_the_known_one() -> None:
    told = response([108, 109, 110, 111], 12, 2)
    assert KNOWN.following(told, 8, is_wide=False) == [
        LoggedMessage(10, 110, b"k", b"110"),
        LoggedMessage(11, 111, b"k", b"111"),
    ]


@pytest.mark.parametrize(
    ("times", "next_offset", "window", "start"),
    [
        pytest.param([108, 109, 110], 11, 2, 8, id="in the newest window"),
        pytest.param([108, 109, 110], 11, 50, 8, id="in an older window with the known one"),
        pytest.param([110], 11, 10, 10, id="the first in the newest window"),
    ],
)
def test_what_follows_for_certain_is_believed(times: list[int], next_offset: int, window: int, start: int) -> None:
    assert found(KNOWN, response(times, next_offset, window), start) == [110]


@pytest.mark.parametrize(
    ("times", "next_offset", "window", "start"),
    [
        pytest.param([108, 109], 10, 2, 8, id="nothing is new"),
        pytest.param([], 8, 0, 8, id="nothing is there"),
        pytest.param([110], 11, 50, 8, id="it may be from a file"),
        pytest.param([120], 13, 12, 12, id="messages are missing"),
        pytest.param([120, 121, 122], 12, 4, 4, id="the broker has begun to count again"),
        pytest.param([109, 111], 12, 2, 8, id="one may have been left out"),
    ],
)
def test_anything_else_is_not(times: list[int], next_offset: int, window: int, start: int) -> None:
    assert found(KNOWN, response(times, next_offset, window), start) == []


def test_a_wide_request_leaves_nothing_out() -> None:
    """
    If the last message is not the one with the last offset, the broker names an offset that is too small.
    """
    told = response([101, 109, 110, 111], 11, 2)
    assert found(KNOWN, told, 2) == []
    assert found(KNOWN, told, 2, is_wide=True) == [110, 111]
    assert found(KNOWN, response([120], 11, 50), 2, is_wide=True) == []


def test_the_first_messages_of_a_partition_follow_nothing() -> None:
    assert found(TailPosition(0, NOTHING_BEFORE), response([5, 6], 2, 0), 0) == [5, 6]
    assert found(TailPosition(0, NOTHING_BEFORE), response([6], 2, 0), 0) == []


@pytest.mark.parametrize(
    ("window", "next_offset", "expected"),
    [(2, 12, [110, 111]), (0, 12, []), (50, 12, []), (2, 10, []), (2, 99, [])],
)
def test_after_a_message_of_ours_offsets_are_believed(window: int, next_offset: int, expected: list[int]) -> None:
    """
    Its time is not known, so the messages must be out of the newest window.
    """
    assert found(TailPosition(10, None), response([108, 109, 110, 111], next_offset, window), 8) == expected
