"""
When a channel connects, how calls end, and how long anything takes, by a clock that the test sets.
"""

import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, StreamReset
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError

from kgateway.broker.seaweed.grpc.channel import PeerCheck
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Limits
from tests.broker.behaviour import result
from tests.broker.seaweed.grpc.peer import AUTHORITY, HEADERS, METHOD, Heard, Link, Peer, Settings

ONE_AT_A_TIME: Settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}


def failure(call: Deferred[BytesValue]) -> RpcError:
    """
    The error of a call.
    """
    with pytest.raises(RpcError) as error:
        result(call)
    return error.value


def test_nothing_is_connected_before_the_first_call() -> None:
    peer = Peer()
    peer.clock.advance(100)
    assert not peer.attempts
    peer.call()
    peer.clock.advance(0)
    assert len(peer.attempts) == 1


def test_calls_share_the_connection_that_is_made_for_the_first() -> None:
    peer = Peer()
    calls = [peer.call(), peer.call()]
    context = peer.accept()
    calls.append(peer.call())
    context.pump()
    for stream_id in (1, 3, 5):
        context.answer(stream_id, BytesValue(value=b"yes").SerializeToString())
    assert [result(call).value for call in calls] == [b"yes"] * 3
    assert len(peer.attempts) == 1


def test_a_request_goes_out_in_one_write_with_the_end_behind_it() -> None:
    peer = Peer()
    peer.call()
    context = peer.accept()
    before = len(context.writes)
    peer.call(message=b"a question")
    peer.call(message=b"another")
    context.pump()
    assert len(context.writes) == before + 1
    assert b"a question" in context.data(3)
    assert b"another" in context.data(5)
    assert context.http2.streams[3].state_machine.state.name == "HALF_CLOSED_REMOTE"


def test_no_call_goes_out_before_the_peer_has_spoken() -> None:
    """
    A server that accepts connections may not speak HTTP/2, and its limit of streams is not known yet.
    """
    peer = Peer(settings=ONE_AT_A_TIME)
    peer.call()
    peer.call()
    context = peer.accept_silently()
    context.http2.receive_data(b"".join(context.transport.writes))
    assert context.http2.open_inbound_streams == 0
    context.transport.writes.clear()
    context.pump()
    assert len(context.requests()) == 1


def test_a_refused_connection_fails_the_calls_that_wait_for_it() -> None:
    peer = Peer()
    calls = [peer.call(), peer.call()]
    peer.clock.advance(0)
    peer.attempts[0][1].errback(ConnectError(string="nobody there"))
    for call in calls:
        error = failure(call)
        assert error.status is Status.UNAVAILABLE
        assert error.message == f"{AUTHORITY}: no connection: An error occurred while connecting: nobody there."


def test_the_next_call_after_a_refusal_connects_again() -> None:
    peer = Peer()
    refused = peer.call()
    peer.clock.advance(0)
    peer.attempts[0][1].errback(ConnectError(string="nobody there"))
    failure(refused)
    call = peer.call()
    peer.accept().answer(1, b"")
    assert result(call) == BytesValue()


def test_an_attempt_ends_after_its_time() -> None:
    peer = Peer(connect_s=10)
    call = peer.call(timeout=100)
    peer.clock.advance(0)
    peer.clock.advance(9.9)
    assert not call.called
    peer.clock.advance(0.2)
    assert failure(call).message == f"{AUTHORITY}: no connection within 10 s"
    assert len(peer.cancelled) == 1
    peer.call()
    peer.clock.advance(0)
    assert len(peer.attempts) == 2


def test_a_peer_that_says_nothing_is_left_after_that_time() -> None:
    peer = Peer(connect_s=10)
    call = peer.call(timeout=100)
    context = peer.accept_silently()
    peer.clock.advance(10)
    assert context.transport.is_aborted
    assert failure(call).message == f"{AUTHORITY}: no connection within 10 s"


def test_a_peer_that_hangs_up_at_once_is_no_connection() -> None:
    peer = Peer()
    call = peer.call()
    peer.accept_silently().lose()
    assert failure(call).message == f"{AUTHORITY}: Connection was closed cleanly."


def test_a_peer_that_speaks_something_else_is_left() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept_silently()
    context.protocol.dataReceived(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    context.lose()
    assert context.transport.is_aborted
    assert "the peer violates HTTP/2" in failure(call).message


def test_a_lost_connection_fails_its_calls_and_the_next_call_connects_again() -> None:
    peer = Peer()
    lost = peer.call()
    peer.accept().lose()
    error = failure(lost)
    assert (error.status, error.message) == (Status.UNAVAILABLE, f"{AUTHORITY}: Connection was closed cleanly.")
    call = peer.call()
    peer.accept().answer(1, b"")
    assert result(call) == BytesValue()


def test_a_call_made_while_the_connection_is_lost_goes_to_the_next_one() -> None:
    peer = Peer()
    again: list[Deferred[BytesValue]] = []
    peer.call().addErrback(lambda _: again.append(peer.call()))
    peer.accept().lose()
    peer.accept().answer(1, b"")
    assert result(again[0]) == BytesValue()


def test_a_call_made_when_a_connection_was_given_up_goes_to_the_next_one() -> None:
    peer = Peer()
    lost = peer.call(timeout=1000)
    context = peer.accept()
    peer.clock.advance(60)
    peer.clock.advance(20)
    assert context.transport.is_aborted
    call = peer.call()
    context.lose()
    assert failure(lost).status is Status.UNAVAILABLE
    peer.accept().answer(1, b"")
    assert result(call) == BytesValue()


def test_a_connection_that_goes_away_before_it_is_handed_over_is_not_used() -> None:
    peer = Peer()
    call = peer.call()
    peer.clock.advance(0)
    factory, made = peer.attempts[0]
    context = Link(factory, peer.clock, {})
    context.protocol.dataReceived(context.http2.data_to_send() + GoAwayFrame(0).serialize())
    made.callback(context.protocol)
    peer.accept().answer(1, b"")
    assert result(call) == BytesValue()


def test_a_connection_takes_calls_when_its_peer_has_passed_the_check() -> None:
    peer = Peer(check=PeerCheck(METHOD, BytesValue(value=b"who are you?"), lambda _: None))
    call = peer.call(message=b"a question")
    context = peer.accept()
    assert b"who are you?" in context.data(1)
    assert not context.data(3)
    context.answer(1, b"")
    context.answer(3, BytesValue(value=b"yes").SerializeToString())
    assert result(call).value == b"yes"


def test_a_connection_to_the_wrong_peer_is_not_used() -> None:
    def refuse(_: BytesValue) -> None:
        raise RpcError(Status.UNAVAILABLE, "it is another one")

    peer = Peer(check=PeerCheck(METHOD, BytesValue(), refuse))
    call = peer.call(message=b"a question")
    context = peer.accept()
    context.answer(1, b"")
    assert str(failure(call)) == f"UNAVAILABLE: {AUTHORITY}: it is another one"
    assert context.is_lost
    assert not context.data(3)


def test_a_check_has_a_time_to_end() -> None:
    peer = Peer(check=PeerCheck(METHOD, BytesValue(), lambda _: None))
    call = peer.call(timeout=100)
    context = peer.accept()
    peer.clock.advance(Limits().connect_s)
    context.pump()
    assert failure(call).status is Status.UNAVAILABLE
    assert context.is_lost


def test_what_one_end_of_a_lost_connection_cancels_ends_once() -> None:
    peer = Peer()
    ends: list[RpcError | None] = []
    peer.channel.open(METHOD, lambda _: None, lambda _: second.cancel())
    second = peer.channel.open(METHOD, lambda _: None, ends.append)
    peer.accept().lose()
    assert [end and end.status for end in ends] == [Status.CANCELLED]


def test_a_deadline_is_told_to_the_peer_and_kept_here() -> None:
    peer = Peer()
    call = peer.call(timeout=5)
    context = peer.accept()
    assert context.requests()[0]["grpc-timeout"] == "5000m"
    peer.clock.advance(4.9)
    assert not call.called
    peer.clock.advance(0.1)
    error = failure(call)
    assert (error.status, error.message) == (Status.DEADLINE_EXCEEDED, "/test.Test/Any did not end within 5 s")
    context.pump()
    assert [reset.error_code for reset in context.of(StreamReset)] == [ErrorCodes.CANCEL]


def test_the_time_until_there_is_a_connection_counts() -> None:
    peer = Peer()
    peer.call(timeout=5)
    late = peer.call(timeout=2)
    peer.clock.advance(3)
    assert failure(late).status is Status.DEADLINE_EXCEEDED
    context = peer.accept()
    assert [request["grpc-timeout"] for request in context.requests()] == ["2000m"]


def test_a_call_that_is_answered_leaves_no_timer() -> None:
    peer = Peer()
    call = peer.call(timeout=5)
    peer.accept().answer(1, b"")
    result(call)
    result_of_close = peer.channel.close()
    peer.clock.advance(0)
    assert [delayed.getTime() for delayed in peer.clock.getDelayedCalls()] == [5.0], "that of the closing transport"
    assert not result_of_close.called


def test_a_cancelled_call_resets_its_stream() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept()
    call.cancel()
    context.pump()
    assert [reset.error_code for reset in context.of(StreamReset)] == [ErrorCodes.CANCEL]
    with pytest.raises(CancelledError):
        result(call)


def test_a_call_cancelled_while_it_waits_never_begins() -> None:
    peer = Peer()
    call = peer.call()
    kept = peer.call()
    call.cancel()
    context = peer.accept()
    assert len(context.requests()) == 1
    assert not kept.called
    with pytest.raises(CancelledError):
        result(call)


def test_calls_beyond_what_the_peer_takes_at_once_wait() -> None:
    peer = Peer(settings=ONE_AT_A_TIME)
    first, second, third = peer.call(), peer.call(), peer.call()
    context = peer.accept()
    second.cancel()
    second.addErrback(lambda _: None)
    assert len(context.requests()) == 1
    context.answer(1, b"")
    assert first.called
    assert len(context.requests()) == 2
    context.answer(3, b"")
    assert result(third) == BytesValue()


def test_more_calls_begin_when_the_peer_takes_more() -> None:
    peer = Peer(settings=ONE_AT_A_TIME)
    peer.call()
    peer.call()
    context = peer.accept()
    context.http2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 2})
    context.pump()
    assert len(context.requests()) == 2


def test_calls_that_wait_for_room_survive_the_connection() -> None:
    peer = Peer(settings=ONE_AT_A_TIME)
    first, second = peer.call(), peer.call()
    peer.accept().lose()
    assert failure(first).status is Status.UNAVAILABLE
    peer.accept().answer(1, b"")
    assert result(second) == BytesValue()


def test_metadata_of_the_channel_and_of_the_call_go_along() -> None:
    peer = Peer(metadata=[("authorization", "Bearer token")])
    heard = Heard()
    peer.channel.open(METHOD, heard.received, heard.ended, metadata=[("x-more", "1")])
    request = peer.accept().requests()[0]
    assert (request["authorization"], request["x-more"]) == ("Bearer token", "1")
    assert request[":path"] == METHOD.path
    assert request[":authority"] == AUTHORITY
    assert request[":scheme"] == "http"


@pytest.mark.parametrize("count", [0, 2])
def test_a_call_has_one_message_as_its_answer(count: int) -> None:
    peer = Peer()
    call = peer.call()
    peer.accept().answer(1, *[b""] * count)
    error = failure(call)
    assert (error.status, error.message) == (
        Status.INTERNAL,
        f"the peer answered with {count} messages instead of one",
    )


def test_an_answer_that_is_no_such_message_is_an_error() -> None:
    peer = Peer()
    call = peer.call()
    peer.accept().answer(1, b"\xff\xff")
    error = failure(call)
    assert error.status is Status.INTERNAL
    assert "other than a google.protobuf.BytesValue" in error.message


def test_a_request_that_is_too_long_is_not_sent() -> None:
    peer = Peer(message_bytes_max=100)
    call = peer.call(message=bytes(101))
    assert failure(call).status is Status.RESOURCE_EXHAUSTED
    peer.clock.advance(0)
    peer.call()
    assert len(peer.accept().requests()) == 1


def test_closing_ends_what_is_open_and_waits_for_the_transport() -> None:
    peer = Peer(settings=ONE_AT_A_TIME)
    open_one, waiting = peer.call(), peer.call()
    context = peer.accept()
    closed = peer.channel.close()
    for call in (open_one, waiting):
        error = failure(call)
        assert (error.status, error.message) == (Status.CANCELLED, f"the channel to {AUTHORITY} was closed")
    assert context.transport.disconnecting
    assert not context.transport.is_aborted
    assert context.transport.producer is None, "one that is paused would keep the connection open"
    assert not closed.called
    context.pump()
    assert [end.error_code for end in context.of(ConnectionTerminated)] == [ErrorCodes.NO_ERROR]
    assert closed.called
    assert not peer.clock.getDelayedCalls()


def test_a_channel_may_be_closed_by_what_it_receives() -> None:
    """
    Data after that is not read.
    """
    peer = Peer()
    _, heard = peer.open()
    context = peer.accept()
    heard.then = peer.channel.close
    context.answer(1, b"close", b"more")
    assert heard.messages == [b"close"]
    assert heard.status == "CANCELLED"
    assert not context.transport.is_aborted
    assert context.is_lost


def test_a_transport_that_does_not_close_is_aborted() -> None:
    peer = Peer(close_s=5)
    peer.call().addErrback(lambda _: None)
    context = peer.accept()
    peer.channel.close()
    peer.clock.advance(4.9)
    assert not context.transport.is_aborted
    peer.clock.advance(0.1)
    assert context.transport.is_aborted


def test_closing_ends_an_attempt() -> None:
    peer = Peer()
    call = peer.call()
    peer.clock.advance(0)
    assert peer.channel.close().called
    assert failure(call).status is Status.CANCELLED
    assert len(peer.cancelled) == 1
    assert not peer.clock.getDelayedCalls()


def test_closing_leaves_a_peer_that_has_not_spoken() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept_silently()
    closed = peer.channel.close()
    assert failure(call).status is Status.CANCELLED
    assert not closed.called
    context.lose()
    assert closed.called
    assert not peer.clock.getDelayedCalls()


def test_a_closed_channel_takes_no_calls_and_says_so_later() -> None:
    peer = Peer()
    assert peer.channel.close().called
    call = peer.call()
    assert not call.called
    peer.clock.advance(0)
    assert failure(call).status is Status.CANCELLED
    assert not peer.attempts


def test_a_channel_can_be_closed_twice() -> None:
    peer = Peer()
    peer.call().addErrback(lambda _: None)
    context = peer.accept()
    closings = [peer.channel.close(), peer.channel.close()]
    context.pump()
    assert all(closing.called for closing in closings)


def test_a_status_of_the_peer_is_the_error() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept()
    context.http2.send_headers(1, [*HEADERS, ("grpc-status", "5"), ("grpc-message", "no%20entry")], end_stream=True)
    context.pump()
    error = failure(call)
    assert (error.status, error.message) == (Status.NOT_FOUND, "no entry")
