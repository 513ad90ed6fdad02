"""
Messages that wait to be sent.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.grpc.messages import MessageWriter
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from tests.broker.seaweed.grpc.peer import framed


@given(st.lists(st.lists(st.binary(max_size=40))), st.lists(st.integers(0, 50)))
def test_what_is_taken_is_what_was_put_in_order(batches: list[list[bytes]], rooms: list[int]) -> None:
    outgoing = MessageWriter(bytes_max=40)
    expected = b""
    for messages in batches:
        outgoing.put(messages)
        expected += b"".join(map(framed, messages))
    taken = b""
    for room in rooms:
        part = outgoing.take(room)
        assert len(part) == min(room, len(expected) - len(taken))
        taken += part
        assert outgoing.size == len(expected) - len(taken)
    assert taken + outgoing.take(1 << 20) == expected
    assert outgoing.size == 0


def test_none_is_put_where_one_is_too_long() -> None:
    outgoing = MessageWriter(bytes_max=4)
    with pytest.raises(RpcError) as refused:
        outgoing.put([b"good", b"too long"])
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    assert outgoing.size == 0


def test_the_end_waits_until_it_was_told() -> None:
    outgoing = MessageWriter(bytes_max=4)
    assert not outgoing.is_waiting
    outgoing.is_finished = True
    assert outgoing.is_waiting
    outgoing.is_ended = True
    assert not outgoing.is_waiting
