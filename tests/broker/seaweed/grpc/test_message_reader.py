"""
Messages are assembled from pieces.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.grpc.messages import MessageReader
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from tests.broker.seaweed.grpc.peer import framed


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(1, 30)))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    incoming = MessageReader(bytes_max=40)
    rest = b"".join(map(framed, messages))
    found: list[bytes] = []
    for cut in cuts:
        found += incoming.feed(rest[:cut])
        rest = rest[cut:]
    found += incoming.feed(rest)
    assert found == messages
    assert not incoming.is_amid


@pytest.mark.parametrize("size", range(1, 9))
def test_it_knows_when_a_message_has_begun(size: int) -> None:
    incoming = MessageReader(bytes_max=40)
    assert list(incoming.feed(framed(b"long")[:size])) == []
    assert incoming.is_amid


def test_a_compressed_message_is_refused() -> None:
    with pytest.raises(RpcError) as refused:
        list(MessageReader(bytes_max=40).feed(b"\1" + framed(b"short")[1:]))
    assert refused.value.status is Status.INTERNAL


def test_a_message_that_is_too_long_is_refused_at_its_length() -> None:
    with pytest.raises(RpcError) as refused:
        list(MessageReader(bytes_max=40).feed(b"\0\0\0\0\x29"))
    assert refused.value.status is Status.RESOURCE_EXHAUSTED


def test_what_comes_before_a_refused_message_is_given() -> None:
    messages = MessageReader(bytes_max=4).feed(framed(b"good") + framed(b"too long"))
    assert next(messages) == b"good"
    with pytest.raises(RpcError):
        next(messages)


def test_a_long_message_is_joined_once() -> None:
    """
    Its parts are kept as they arrived.
    """
    incoming, part = MessageReader(bytes_max=1 << 20), bytes(1000)
    list(incoming.feed(framed(bytes(100_000))[:5]))
    for _ in range(99):
        assert list(incoming.feed(part)) == []
    assert sum(kept is part for kept in incoming._parts) == 99
    assert list(incoming.feed(part)) == [bytes(100_000)]
