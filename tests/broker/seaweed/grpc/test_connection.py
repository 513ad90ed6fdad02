"""
HTTP/2 as streams see it: windows, the end of either side, going away, silence.
"""

import gc
import weakref

import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingReceived, StreamEnded, StreamReset, WindowUpdated
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.frames import STALLED_S, WRITE_BYTES
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from tests.broker.seaweed.grpc.peer import HEADERS, METHOD, Heard, Link, Peer, framed


def opened(peer: Peer) -> tuple[Link, Stream, Heard]:
    """
    A connection with an open stream.
    """
    stream, heard = peer.open()
    return peer.accept(), stream, heard


def go_away(context: Link, last_stream: int) -> None:
    """
    Let the server take no more calls. h2 does not work after this frame, so the server's h2 does not see it.
    """
    context.protocol.dataReceived(GoAwayFrame(0, last_stream_id=last_stream).serialize())
    context.pump()


def test_many_small_messages_share_a_frame() -> None:
    context, stream, _ = opened(Peer())
    messages = [b"%d" % number for number in range(500)]
    stream.send(messages[:200])
    stream.send(messages[200:])
    context.pump()
    assert context.data(1) == b"".join(map(framed, messages))
    assert len(context.of(DataReceived)) == 1


def test_messages_are_given_as_they_come() -> None:
    context, stream, heard = opened(Peer())
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"one") + framed(b"two")[:3])
    context.pump()
    assert heard.messages == [b"one"]
    context.http2.send_data(1, framed(b"two")[3:], pad_length=7)
    context.pump()
    assert heard.messages == [b"one", b"two"]
    assert not heard.ends
    stream.finish()
    context.pump()
    context.end(1)
    assert heard.status == "OK"


def test_the_end_of_what_is_sent_comes_behind_it() -> None:
    context, stream, _ = opened(Peer())
    stream.send([bytes(100_000)])
    stream.finish()
    context.pump()
    assert not context.of(StreamEnded)
    context.http2.acknowledge_received_data(65_535, 1)
    context.pump()
    assert len(context.data(1)) == 100_005
    assert context.events[-1] == context.of(StreamEnded)[0]


def test_what_a_window_has_no_room_for_waits() -> None:
    context, stream, _ = opened(Peer())
    stream.send([bytes(100_000)])
    assert stream.outgoing.size == 100_005
    context.pump()
    assert stream.outgoing.size == 100_005 - 65_535
    context.http2.increment_flow_control_window(1000, 1)
    context.pump()
    assert stream.outgoing.size == 100_005 - 65_535, "the connection's window is shut"
    context.http2.increment_flow_control_window(400)
    context.pump()
    assert stream.outgoing.size == 100_005 - 65_535 - 400


def test_the_end_needs_no_room() -> None:
    context, stream, _ = opened(Peer())
    stream.send([bytes(65_530)])
    context.pump()
    assert context.http2.remote_flow_control_window(1) == 0
    stream.finish()
    context.pump()
    assert context.of(StreamEnded)


def test_a_turn_has_one_write_and_what_is_received_needs_none() -> None:
    peer = Peer()
    context, stream, heard = opened(peer)
    before = len(peer.clock.getDelayedCalls())
    stream.send([b"one"])
    stream.send([b"two"])
    assert len(peer.clock.getDelayedCalls()) == before + 1
    context.pump()
    timers: list[int] = []

    def answer() -> None:
        stream.send([b"three"])
        timers.append(len(peer.clock.getDelayedCalls()))

    heard.then = answer
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"go on"))
    context.protocol.dataReceived(context.http2.data_to_send())
    assert framed(b"three") in context.transport.writes[0], "without waiting for another turn"
    assert timers == [before]


def test_what_was_to_be_written_is_forgotten_with_the_connection() -> None:
    peer = Peer()
    context, stream, _ = opened(peer)
    stream.send([b"never"])
    context.lose()
    assert not peer.clock.getDelayedCalls()
    assert not context.transport.writes


def test_what_was_to_be_written_before_the_process_stood_still_is_not() -> None:
    """
    A caller that repeats the call first checks whether it still may.
    """
    peer = Peer()
    context, stream, heard = opened(peer)
    stream.send([b"on its way"])
    peer.clock.advance(STALLED_S + 0.1)
    assert context.transport.is_aborted
    assert not context.transport.writes
    context.lose()
    assert heard.status == "UNAVAILABLE"


def test_what_comes_meanwhile_does_not_hurry_it() -> None:
    """
    Usually a process that resumes and first reads data writes waiting frames together with its answer.
    """
    peer = Peer()
    context, stream, _ = opened(peer)
    stream.send([b"on its way"])
    peer.clock.rightNow += STALLED_S + 0.1
    context.http2.ping(bytes(8))
    context.protocol.dataReceived(context.http2.data_to_send())
    assert context.transport.is_aborted
    assert not context.transport.writes


def test_streams_take_turns() -> None:
    """
    A short message does not wait for a long one, and no stream waits for another whose window is closed.
    """
    peer = Peer(settings={SettingCodes.INITIAL_WINDOW_SIZE: 30_000})
    context, first, _ = opened(peer)
    second, _ = peer.open()
    first.send([bytes(100_000)])
    second.send([b"short", bytes(20_000)])
    context.pump()
    assert [event.stream_id for event in context.of(DataReceived)][:3] == [1, 3, 1]
    assert first.outgoing.size == 100_005 - 30_000
    assert second.outgoing.size == 0


def test_a_full_transport_is_given_no_more() -> None:
    context, stream, _ = opened(Peer(settings={SettingCodes.INITIAL_WINDOW_SIZE: 1 << 24}))
    context.http2.increment_flow_control_window(1 << 24)
    context.pump()
    size = 3 * WRITE_BYTES
    context.transport.full_on_write = True
    stream.send([bytes(size)])
    context.pump()
    assert size - stream.outgoing.size <= WRITE_BYTES + 16_384
    kept = stream.outgoing.size
    context.pump()
    assert stream.outgoing.size == kept
    context.transport.full_on_write = False
    context.transport.resume()
    context.pump()
    assert stream.outgoing.size == 0
    assert len(context.data(1)) == size + 5


def test_what_was_received_is_reported_when_half_the_window_is_used() -> None:
    peer = Peer(window_bytes=100_000)
    context, _, heard = opened(peer)
    context.events.clear()
    context.http2.send_headers(1, HEADERS)
    for _ in range(3):
        context.http2.send_data(1, framed(bytes(16_000)))
        context.pump()
    assert not context.of(WindowUpdated)
    context.http2.send_data(1, framed(bytes(16_000)))
    context.pump()
    assert {(event.stream_id, event.delta) for event in context.of(WindowUpdated)} == {(0, 64_020), (1, 64_020)}
    assert len(heard.messages) == 4


def test_padding_is_reported_too() -> None:
    context, _, heard = opened(Peer(window_bytes=100_000))
    context.http2.send_headers(1, HEADERS)
    for _ in range(1_000):
        context.http2.send_data(1, framed(b"x"), pad_length=255)
        context.pump()
    assert len(heard.messages) == 1_000


def test_a_message_longer_than_the_window_comes_whole() -> None:
    peer = Peer(window_bytes=100_000)
    context, _, heard = opened(peer)
    context.http2.send_headers(1, HEADERS)
    rest = framed(bytes(range(250)) * 4000)
    while rest:
        room = min(context.http2.local_flow_control_window(1), 16_384)
        assert room
        context.http2.send_data(1, rest[:room])
        rest = rest[room:]
        context.pump()
    assert heard.messages == [bytes(range(250)) * 4000]


def test_what_comes_late_for_a_stream_that_was_cancelled_opens_the_window_again() -> None:
    peer = Peer(window_bytes=100_000)
    context, stream, heard = opened(peer)
    context.http2.send_headers(1, HEADERS)
    context.pump()
    stream.cancel()
    context.http2.send_data(1, framed(bytes(16_000)))
    for _ in range(3):
        context.http2.send_data(1, bytes(16_000))
    context.events.clear()
    context.protocol.dataReceived(context.http2.data_to_send())
    context.pump()
    assert [(event.stream_id, event.delta) for event in context.of(WindowUpdated)] == [(0, 64_005)]
    assert heard.messages == []
    assert heard.status == "CANCELLED"


def test_the_end_of_the_peer_ends_what_is_not_sent_yet() -> None:
    context, stream, heard = opened(Peer())
    stream.send([bytes(100_000)])
    context.pump()
    context.http2.send_headers(1, HEADERS)
    context.end(1, "7", ("grpc-message", "go away"))
    assert str(heard.ends[0]) == "PERMISSION_DENIED: go away"
    assert stream.outgoing.size == 0
    assert [reset.error_code for reset in context.of(StreamReset)] == [ErrorCodes.NO_ERROR]
    stream.send([b"more"])
    assert stream.outgoing.size == 0, "it goes nowhere"
    stream.finish()
    stream.cancel()
    context.pump()
    assert heard.status == "PERMISSION_DENIED"


def test_a_stream_that_both_have_ended_is_not_reset() -> None:
    context, stream, heard = opened(Peer())
    stream.finish()
    context.pump()
    context.answer(1)
    assert heard.status == "OK"
    assert not context.of(StreamReset)


def test_an_answer_that_ends_amid_a_message_is_an_error() -> None:
    context, _, heard = opened(Peer())
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"whole") + framed(b"cut")[:6])
    context.end(1)
    assert heard.messages == [b"whole"]
    assert str(heard.ends[0]) == "INTERNAL: the response ended within a message"


def test_the_page_of_a_proxy_is_no_message() -> None:
    context, _, heard = opened(Peer())
    context.http2.send_headers(1, [(":status", "502"), ("content-type", "text/html")])
    context.http2.send_data(1, b"<html>Bad Gateway</html>")
    context.http2.send_data(1, b"", end_stream=True)
    context.pump()
    assert heard.messages == []
    assert str(heard.ends[0]) == "UNAVAILABLE: the peer answered with HTTP status 502"


def test_an_end_without_trailers_is_no_good_end() -> None:
    context, _, heard = opened(Peer())
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"all"), end_stream=True)
    context.pump()
    assert heard.messages == [b"all"]
    assert heard.status == "UNKNOWN"


def test_a_compressed_message_ends_the_call_and_resets_its_stream() -> None:
    context, _, heard = opened(Peer())
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, b"\1" + framed(b"x")[1:])
    context.pump()
    assert heard.status == "INTERNAL"
    assert [reset.error_code for reset in context.of(StreamReset)] == [ErrorCodes.CANCEL]


def test_a_reset_of_the_peer_ends_the_call() -> None:
    context, _, heard = opened(Peer())
    context.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    context.pump()
    assert heard.status == "UNAVAILABLE"


def test_a_call_that_the_peer_has_not_taken_is_made_again() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept()
    context.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    context.pump()
    assert len(context.requests()) == 1, "not at once: the peer has too much to do"
    peer.clock.advance(0.05)
    context.pump()
    assert len(context.requests()) == 2
    context.answer(3, b"")
    assert call.called


def test_a_call_that_is_never_taken_ends_in_its_time() -> None:
    peer = Peer()
    call = peer.channel.call(METHOD, BytesValue(), 0.12)
    context = peer.accept()
    failed = []
    call.addErrback(lambda failure: failed.append(failure.value))
    for number in range(3):
        assert not failed
        context.http2.reset_stream(1 + 2 * number, ErrorCodes.REFUSED_STREAM)
        context.pump()
        peer.clock.advance(0.05)
        context.pump()
    assert [str(error) for error in failed] == [f"DEADLINE_EXCEEDED: {METHOD.path} was not accepted within 0.12 s"]
    peer.clock.advance(1)
    context.pump()
    assert len(context.requests()) == 3, "none goes out that could not be answered in time"


def test_nobody_makes_a_call_again_that_was_cancelled_meanwhile() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept()
    context.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    context.pump()
    call.addErrback(lambda failure: failure.trap(CancelledError))
    call.cancel()
    peer.clock.advance(1)
    context.pump()
    assert len(context.requests()) == 1


def test_a_stream_cancelled_by_its_first_message_gets_no_second() -> None:
    peer = Peer()
    context, stream, heard = opened(peer)
    heard.then = stream.cancel
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"one") + framed(b"two"))
    context.http2.send_data(1, framed(b"three"))
    context.pump()
    assert heard.messages == [b"one"]
    assert heard.status == "CANCELLED"


def test_a_stream_cancelled_by_its_last_message_has_ended_then() -> None:
    context, stream, heard = opened(Peer())
    heard.then = stream.cancel
    context.http2.send_headers(1, HEADERS)
    context.http2.send_data(1, framed(b"one"), end_stream=True)
    context.pump()
    assert heard.status == "CANCELLED"
    assert not context.is_lost


def test_going_away_lets_open_calls_finish_and_new_ones_go_elsewhere() -> None:
    peer = Peer()
    context, stream, heard = opened(peer)
    go_away(context, 1)
    peer.call()
    second = peer.accept()
    assert len(peer.attempts) == 2
    assert len(second.requests()) == 1
    stream.send([b"still here"])
    stream.finish()
    context.pump()
    assert context.data(1) == framed(b"still here")
    assert not context.transport.disconnecting
    context.answer(1, b"and answered")
    assert heard.messages == [b"and answered"]
    assert heard.status == "OK"
    assert context.is_lost, "nobody needs it any more"


def test_calls_that_a_peer_going_away_has_not_taken_fail() -> None:
    peer = Peer()
    context, _, taken = opened(peer)
    _, refused = peer.open()
    context.pump()
    go_away(context, 1)
    assert refused.status == "UNAVAILABLE"
    assert not taken.ends


def test_calls_of_one_message_that_it_has_not_taken_go_elsewhere() -> None:
    peer = Peer()
    context, _, _ = opened(peer)
    call = peer.call()
    context.pump()
    go_away(context, 1)
    peer.clock.advance(0.05)
    peer.accept().answer(1, b"")
    assert call.called


def test_calls_that_wait_for_room_go_elsewhere_when_the_peer_goes_away() -> None:
    peer = Peer(settings={SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    context, _, _ = opened(peer)
    call = peer.call()
    go_away(context, 1)
    peer.accept().answer(1, b"")
    assert call.called


def test_an_idle_connection_is_left_when_its_peer_goes_away() -> None:
    peer = Peer()
    call = peer.call()
    context = peer.accept()
    context.answer(1, b"")
    assert call.called
    go_away(context, 1)
    assert context.is_lost
    assert not peer.clock.getDelayedCalls()


def test_a_connection_out_of_stream_numbers_is_used_no_more() -> None:
    peer = Peer()
    context, _, heard = opened(peer)
    context.protocol._http2.highest_outbound_stream_id = (1 << 31) - 3
    _, last = peer.open()
    context.pump()
    peer.open()
    assert len(peer.accept().requests()) == 1
    context.answer((1 << 31) - 1)
    assert last.status == "OK"
    assert not heard.ends


def test_a_silent_peer_with_open_calls_is_pinged() -> None:
    peer = Peer(silent_s=60, ping_answer_s=20)
    context, _, heard = opened(peer)
    peer.clock.advance(59)
    context.pump()
    assert not context.of(PingReceived)
    peer.clock.advance(1)
    context.pump()
    assert len(context.of(PingReceived)) == 1
    peer.clock.advance(20)
    context.pump()
    assert not context.is_lost
    assert not heard.ends


def test_who_says_something_is_not_pinged() -> None:
    peer = Peer(silent_s=60)
    context, _, _ = opened(peer)
    peer.clock.advance(40)
    context.http2.ping(b"its.ping")
    context.pump()
    peer.clock.advance(59)
    context.pump()
    assert not context.of(PingReceived)
    peer.clock.advance(1)
    context.pump()
    assert len(context.of(PingReceived)) == 1


def test_a_peer_that_does_not_answer_a_ping_is_left() -> None:
    peer = Peer(silent_s=60, ping_answer_s=20)
    context, _, heard = opened(peer)
    peer.clock.advance(60)
    peer.clock.advance(19.9)
    assert not context.transport.is_aborted
    peer.clock.advance(0.1)
    assert context.transport.is_aborted
    context.lose()
    assert str(heard.ends[0]) == "UNAVAILABLE: peer:1: no response to a ping within 20 s"


def test_a_peer_that_owes_nothing_is_not_pinged() -> None:
    peer = Peer(silent_s=60)
    call = peer.call()
    context = peer.accept()
    context.answer(1, b"")
    assert call.called
    peer.clock.pump([60] * 10)
    context.pump()
    assert not context.of(PingReceived)


def test_a_peer_that_breaks_the_protocol_is_left() -> None:
    context, _, heard = opened(Peer())
    context.protocol.dataReceived(b"\0\0\4\x08\0\0\0\0\1\0\0\0\0")  # a window grows by nothing
    context.lose()
    assert context.transport.is_aborted
    context.http2.receive_data(b"".join(context.transport.writes))
    assert context.http2.state_machine.state.name == "CLOSED", "it was told"
    assert heard.status == "UNAVAILABLE"
    assert "the peer violates HTTP/2" in str(heard.ends[0])


def test_windows_are_large_from_the_start() -> None:
    context, _, _ = opened(Peer())
    assert context.http2.local_flow_control_window(1) == 16 << 20
    assert context.http2.remote_settings.enable_push == 0


def test_a_receiver_that_fails_ends_its_call_alone(failures: list[Failure]) -> None:
    peer = Peer()
    context, _, heard = opened(peer)
    _, others = peer.open()
    heard.then = lambda: next(iter(()))
    context.pump()
    for stream_id in (1, 3):
        context.http2.send_headers(stream_id, HEADERS)
        context.http2.send_data(stream_id, framed(b"one") + framed(b"two"))
    context.pump()
    assert failures.pop().check(StopIteration)
    assert heard.messages == [b"one"]
    assert heard.status == "INTERNAL"
    assert [reset.stream_id for reset in context.of(StreamReset)] == [1]
    assert others.messages == [b"one", b"two"]
    assert not others.ends


def test_whose_end_fails_ends_alone(failures: list[Failure]) -> None:
    peer = Peer()
    peer.channel.open(METHOD, lambda _: None, lambda _: next(iter(())))
    _, others = peer.open()
    peer.accept().lose()
    assert failures.pop().check(StopIteration)
    assert others.status == "UNAVAILABLE"


def test_a_stream_that_is_finished_sends_no_more() -> None:
    _, stream, _ = opened(Peer())
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        stream.send([b"more"])


def test_a_message_that_is_too_long_is_refused_at_once_and_the_stream_goes_on() -> None:
    context, stream, heard = opened(Peer(message_bytes_max=100))
    with pytest.raises(RpcError) as refused:
        stream.send([b"short", bytes(101)])
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    stream.send([b"next"])
    context.pump()
    assert context.data(1) == framed(b"next")
    assert not heard.ends


def test_calls_leave_nothing_that_must_be_searched_for() -> None:
    """
    The objects of a call are freed when it ends, without the garbage collector.
    """
    peer = Peer()
    peer.call().addErrback(lambda _: None)
    context = peer.accept()
    context.answer(1, b"")
    for stream_id in range(3, 23, 2):
        peer.call()
        context.pump()
        context.answer(stream_id, b"")
    gc.collect()
    seen = weakref.WeakSet[Stream]()
    gc.disable()
    try:
        for stream_id in range(23, 43, 2):
            call = peer.call()
            seen.update(context.protocol._streams.values())
            assert seen
            context.pump()
            context.answer(stream_id, b"")
            assert call.called
        assert not list(seen)
    finally:
        gc.enable()
