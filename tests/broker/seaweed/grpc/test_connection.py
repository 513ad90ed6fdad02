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

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.grpc.writer import OVERSLEPT_S, WRITE_BYTES
from tests.broker.seaweed.grpc.peer import HEADERS, METHOD, Heard, Link, Peer, framed


def opened(peer: Peer) -> tuple[Link, Stream, Heard]:
    """
    A connection with an open stream.
    """
    stream, heard = peer.open()
    return peer.accept(), stream, heard


def go_away(link: Link, last_stream: int) -> None:
    """
    The server takes no more calls. h2 does not go on after this, so it is not told.
    """
    link.protocol.dataReceived(GoAwayFrame(0, last_stream_id=last_stream).serialize())
    link.pump()


def test_many_small_messages_share_a_frame() -> None:
    link, stream, _ = opened(Peer())
    messages = [b"%d" % number for number in range(500)]
    stream.send(messages[:200])
    stream.send(messages[200:])
    link.pump()
    assert link.data(1) == b"".join(map(framed, messages))
    assert len(link.of(DataReceived)) == 1


def test_messages_are_given_as_they_come() -> None:
    link, stream, heard = opened(Peer())
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"one") + framed(b"two")[:3])
    link.pump()
    assert heard.messages == [b"one"]
    link.http2.send_data(1, framed(b"two")[3:], pad_length=7)
    link.pump()
    assert heard.messages == [b"one", b"two"]
    assert not heard.ends
    stream.finish()
    link.pump()
    link.end(1)
    assert heard.status == "OK"


def test_the_end_of_what_is_sent_comes_behind_it() -> None:
    link, stream, _ = opened(Peer())
    stream.send([bytes(100_000)])
    stream.finish()
    link.pump()
    assert not link.of(StreamEnded)
    link.http2.acknowledge_received_data(65_535, 1)
    link.pump()
    assert len(link.data(1)) == 100_005
    assert link.events[-1] == link.of(StreamEnded)[0]


def test_what_a_window_has_no_room_for_waits() -> None:
    link, stream, _ = opened(Peer())
    stream.send([bytes(100_000)])
    assert stream.pending == 100_005
    link.pump()
    assert stream.pending == 100_005 - 65_535
    link.http2.increment_flow_control_window(1000, 1)
    link.pump()
    assert stream.pending == 100_005 - 65_535, "the connection's window is shut"
    link.http2.increment_flow_control_window(400)
    link.pump()
    assert stream.pending == 100_005 - 65_535 - 400


def test_the_end_needs_no_room() -> None:
    link, stream, _ = opened(Peer())
    stream.send([bytes(65_530)])
    link.pump()
    assert link.http2.remote_flow_control_window(1) == 0
    stream.finish()
    link.pump()
    assert link.of(StreamEnded)


def test_a_turn_has_one_write_and_what_is_received_needs_none() -> None:
    peer = Peer()
    link, stream, heard = opened(peer)
    before = len(peer.clock.getDelayedCalls())
    stream.send([b"one"])
    stream.send([b"two"])
    assert len(peer.clock.getDelayedCalls()) == before + 1
    link.pump()
    timers: list[int] = []

    def answer() -> None:
        stream.send([b"three"])
        timers.append(len(peer.clock.getDelayedCalls()))

    heard.then = answer
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"go on"))
    link.protocol.dataReceived(link.http2.data_to_send())
    assert framed(b"three") in link.transport.writes[0], "without waiting for another turn"
    assert timers == [before]


def test_what_was_to_be_written_is_forgotten_with_the_connection() -> None:
    peer = Peer()
    link, stream, _ = opened(peer)
    stream.send([b"never"])
    link.lose()
    assert not peer.clock.getDelayedCalls()
    assert not link.transport.writes


def test_what_was_to_be_written_before_the_process_stood_still_is_not() -> None:
    """
    Whoever does it again asks first whether it may.
    """
    peer = Peer()
    link, stream, heard = opened(peer)
    stream.send([b"on its way"])
    peer.clock.advance(OVERSLEPT_S + 0.1)
    assert link.transport.is_aborted
    assert not link.transport.writes
    link.lose()
    assert heard.status == "UNAVAILABLE"


def test_what_comes_meanwhile_does_not_hurry_it() -> None:
    """
    An answer that is read first, when the process goes on, has others written with it, as a rule.
    """
    peer = Peer()
    link, stream, _ = opened(peer)
    stream.send([b"on its way"])
    peer.clock.rightNow += OVERSLEPT_S + 0.1
    link.http2.ping(bytes(8))
    link.protocol.dataReceived(link.http2.data_to_send())
    assert link.transport.is_aborted
    assert not link.transport.writes


def test_streams_take_turns() -> None:
    """
    A short message does not wait for a long one, nor one stream with a shut window for another.
    """
    peer = Peer(settings={SettingCodes.INITIAL_WINDOW_SIZE: 30_000})
    link, first, _ = opened(peer)
    second, _ = peer.open()
    first.send([bytes(100_000)])
    second.send([b"short", bytes(20_000)])
    link.pump()
    assert [event.stream_id for event in link.of(DataReceived)][:3] == [1, 3, 1]
    assert first.pending == 100_005 - 30_000
    assert second.pending == 0


def test_a_full_transport_is_given_no_more() -> None:
    link, stream, _ = opened(Peer(settings={SettingCodes.INITIAL_WINDOW_SIZE: 1 << 24}))
    link.http2.increment_flow_control_window(1 << 24)
    link.pump()
    size = 3 * WRITE_BYTES
    link.transport.full_on_write = True
    stream.send([bytes(size)])
    link.pump()
    assert size - stream.pending <= WRITE_BYTES + 16_384
    kept = stream.pending
    link.pump()
    assert stream.pending == kept
    link.transport.full_on_write = False
    link.transport.resume()
    link.pump()
    assert stream.pending == 0
    assert len(link.data(1)) == size + 5


def test_what_was_received_is_reported_when_half_the_window_is_used() -> None:
    peer = Peer(window_bytes=100_000)
    link, _, heard = opened(peer)
    link.events.clear()
    link.http2.send_headers(1, HEADERS)
    for _ in range(3):
        link.http2.send_data(1, framed(bytes(16_000)))
        link.pump()
    assert not link.of(WindowUpdated)
    link.http2.send_data(1, framed(bytes(16_000)))
    link.pump()
    assert {(event.stream_id, event.delta) for event in link.of(WindowUpdated)} == {(0, 64_020), (1, 64_020)}
    assert len(heard.messages) == 4


def test_padding_is_reported_too() -> None:
    link, _, heard = opened(Peer(window_bytes=100_000))
    link.http2.send_headers(1, HEADERS)
    for _ in range(1_000):
        link.http2.send_data(1, framed(b"x"), pad_length=255)
        link.pump()
    assert len(heard.messages) == 1_000


def test_a_message_longer_than_the_window_comes_whole() -> None:
    peer = Peer(window_bytes=100_000)
    link, _, heard = opened(peer)
    link.http2.send_headers(1, HEADERS)
    rest = framed(bytes(range(250)) * 4000)
    while rest:
        room = min(link.http2.local_flow_control_window(1), 16_384)
        assert room
        link.http2.send_data(1, rest[:room])
        rest = rest[room:]
        link.pump()
    assert heard.messages == [bytes(range(250)) * 4000]


def test_what_comes_late_for_a_stream_that_was_cancelled_opens_the_window_again() -> None:
    peer = Peer(window_bytes=100_000)
    link, stream, heard = opened(peer)
    link.http2.send_headers(1, HEADERS)
    link.pump()
    stream.cancel()
    link.http2.send_data(1, framed(bytes(16_000)))
    for _ in range(3):
        link.http2.send_data(1, bytes(16_000))
    link.events.clear()
    link.protocol.dataReceived(link.http2.data_to_send())
    link.pump()
    assert [(event.stream_id, event.delta) for event in link.of(WindowUpdated)] == [(0, 64_005)]
    assert heard.messages == []
    assert heard.status == "CANCELLED"


def test_the_end_of_the_peer_ends_what_is_not_sent_yet() -> None:
    link, stream, heard = opened(Peer())
    stream.send([bytes(100_000)])
    link.pump()
    link.http2.send_headers(1, HEADERS)
    link.end(1, "7", ("grpc-message", "go away"))
    assert str(heard.ends[0]) == "PERMISSION_DENIED: go away"
    assert stream.pending == 0
    assert [reset.error_code for reset in link.of(StreamReset)] == [ErrorCodes.NO_ERROR]
    stream.send([b"more"])
    assert stream.pending == 0, "it goes nowhere"
    stream.finish()
    stream.cancel()
    link.pump()
    assert heard.status == "PERMISSION_DENIED"


def test_a_stream_that_both_have_ended_is_not_reset() -> None:
    link, stream, heard = opened(Peer())
    stream.finish()
    link.pump()
    link.answer(1)
    assert heard.status == "OK"
    assert not link.of(StreamReset)


def test_an_answer_that_ends_amid_a_message_is_an_error() -> None:
    link, _, heard = opened(Peer())
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"whole") + framed(b"cut")[:6])
    link.end(1)
    assert heard.messages == [b"whole"]
    assert str(heard.ends[0]) == "INTERNAL: the answer ended amid a message"


def test_the_page_of_a_proxy_is_no_message() -> None:
    link, _, heard = opened(Peer())
    link.http2.send_headers(1, [(":status", "502"), ("content-type", "text/html")])
    link.http2.send_data(1, b"<html>Bad Gateway</html>")
    link.http2.send_data(1, b"", end_stream=True)
    link.pump()
    assert heard.messages == []
    assert str(heard.ends[0]) == "UNAVAILABLE: the peer answered with HTTP status 502"


def test_an_end_without_trailers_is_no_good_end() -> None:
    link, _, heard = opened(Peer())
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"all"), end_stream=True)
    link.pump()
    assert heard.messages == [b"all"]
    assert heard.status == "UNKNOWN"


def test_a_compressed_message_ends_the_call_and_resets_its_stream() -> None:
    link, _, heard = opened(Peer())
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, b"\1" + framed(b"x")[1:])
    link.pump()
    assert heard.status == "INTERNAL"
    assert [reset.error_code for reset in link.of(StreamReset)] == [ErrorCodes.CANCEL]


def test_a_reset_of_the_peer_ends_the_call() -> None:
    link, _, heard = opened(Peer())
    link.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    link.pump()
    assert heard.status == "UNAVAILABLE"


def test_a_call_that_the_peer_has_not_taken_is_made_again() -> None:
    peer = Peer()
    call = peer.call()
    link = peer.accept()
    link.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    link.pump()
    assert len(link.requests()) == 1, "not at once: the peer has too much to do"
    peer.clock.advance(0.05)
    link.pump()
    assert len(link.requests()) == 2
    link.answer(3, b"")
    assert call.called


def test_a_call_that_is_never_taken_ends_in_its_time() -> None:
    peer = Peer()
    call = peer.channel.call(METHOD, BytesValue(), 0.12)
    link = peer.accept()
    failed = []
    call.addErrback(lambda failure: failed.append(failure.value))
    for number in range(3):
        assert not failed
        link.http2.reset_stream(1 + 2 * number, ErrorCodes.REFUSED_STREAM)
        link.pump()
        peer.clock.advance(0.05)
        link.pump()
    assert [str(error) for error in failed] == [f"DEADLINE_EXCEEDED: {METHOD.path} was not taken within 0.12 s"]
    peer.clock.advance(1)
    link.pump()
    assert len(link.requests()) == 3, "none goes out that could not be answered in time"


def test_nobody_makes_a_call_again_that_was_cancelled_meanwhile() -> None:
    peer = Peer()
    call = peer.call()
    link = peer.accept()
    link.http2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    link.pump()
    call.addErrback(lambda failure: failure.trap(CancelledError))
    call.cancel()
    peer.clock.advance(1)
    link.pump()
    assert len(link.requests()) == 1


def test_a_stream_cancelled_by_its_first_message_gets_no_second() -> None:
    peer = Peer()
    link, stream, heard = opened(peer)
    heard.then = stream.cancel
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"one") + framed(b"two"))
    link.http2.send_data(1, framed(b"three"))
    link.pump()
    assert heard.messages == [b"one"]
    assert heard.status == "CANCELLED"


def test_a_stream_cancelled_by_its_last_message_has_ended_then() -> None:
    link, stream, heard = opened(Peer())
    heard.then = stream.cancel
    link.http2.send_headers(1, HEADERS)
    link.http2.send_data(1, framed(b"one"), end_stream=True)
    link.pump()
    assert heard.status == "CANCELLED"
    assert not link.is_lost


def test_going_away_lets_open_calls_finish_and_new_ones_go_elsewhere() -> None:
    peer = Peer()
    link, stream, heard = opened(peer)
    go_away(link, 1)
    peer.call()
    second = peer.accept()
    assert len(peer.attempts) == 2
    assert len(second.requests()) == 1
    stream.send([b"still here"])
    stream.finish()
    link.pump()
    assert link.data(1) == framed(b"still here")
    assert not link.transport.disconnecting
    link.answer(1, b"and answered")
    assert heard.messages == [b"and answered"]
    assert heard.status == "OK"
    assert link.is_lost, "nobody needs it any more"


def test_calls_that_a_peer_going_away_has_not_taken_fail() -> None:
    peer = Peer()
    link, _, taken = opened(peer)
    _, refused = peer.open()
    link.pump()
    go_away(link, 1)
    assert refused.status == "UNAVAILABLE"
    assert not taken.ends


def test_calls_of_one_message_that_it_has_not_taken_go_elsewhere() -> None:
    peer = Peer()
    link, _, _ = opened(peer)
    call = peer.call()
    link.pump()
    go_away(link, 1)
    peer.clock.advance(0.05)
    peer.accept().answer(1, b"")
    assert call.called


def test_calls_that_wait_for_room_go_elsewhere_when_the_peer_goes_away() -> None:
    peer = Peer(settings={SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    link, _, _ = opened(peer)
    call = peer.call()
    go_away(link, 1)
    peer.accept().answer(1, b"")
    assert call.called


def test_an_idle_connection_is_left_when_its_peer_goes_away() -> None:
    peer = Peer()
    call = peer.call()
    link = peer.accept()
    link.answer(1, b"")
    assert call.called
    go_away(link, 1)
    assert link.is_lost
    assert not peer.clock.getDelayedCalls()


def test_a_connection_out_of_stream_numbers_is_used_no_more() -> None:
    peer = Peer()
    link, _, heard = opened(peer)
    link.protocol._http2.highest_outbound_stream_id = (1 << 31) - 3
    _, last = peer.open()
    link.pump()
    peer.open()
    assert len(peer.accept().requests()) == 1
    link.answer((1 << 31) - 1)
    assert last.status == "OK"
    assert not heard.ends


def test_a_silent_peer_with_open_calls_is_pinged() -> None:
    peer = Peer(silent_s=60, ping_answer_s=20)
    link, _, heard = opened(peer)
    peer.clock.advance(59)
    link.pump()
    assert not link.of(PingReceived)
    peer.clock.advance(1)
    link.pump()
    assert len(link.of(PingReceived)) == 1
    peer.clock.advance(20)
    link.pump()
    assert not link.is_lost
    assert not heard.ends


def test_who_says_something_is_not_pinged() -> None:
    peer = Peer(silent_s=60)
    link, _, _ = opened(peer)
    peer.clock.advance(40)
    link.http2.ping(b"its.ping")
    link.pump()
    peer.clock.advance(59)
    link.pump()
    assert not link.of(PingReceived)
    peer.clock.advance(1)
    link.pump()
    assert len(link.of(PingReceived)) == 1


def test_a_peer_that_does_not_answer_a_ping_is_left() -> None:
    peer = Peer(silent_s=60, ping_answer_s=20)
    link, _, heard = opened(peer)
    peer.clock.advance(60)
    peer.clock.advance(19.9)
    assert not link.transport.is_aborted
    peer.clock.advance(0.1)
    assert link.transport.is_aborted
    link.lose()
    assert str(heard.ends[0]) == "UNAVAILABLE: peer:1: no answer to a ping within 20 s"


def test_a_peer_that_owes_nothing_is_not_pinged() -> None:
    peer = Peer(silent_s=60)
    call = peer.call()
    link = peer.accept()
    link.answer(1, b"")
    assert call.called
    peer.clock.pump([60] * 10)
    link.pump()
    assert not link.of(PingReceived)


def test_a_peer_that_breaks_the_protocol_is_left() -> None:
    link, _, heard = opened(Peer())
    link.protocol.dataReceived(b"\0\0\4\x08\0\0\0\0\1\0\0\0\0")  # a window grows by nothing
    link.lose()
    assert link.transport.is_aborted
    link.http2.receive_data(b"".join(link.transport.writes))
    assert link.http2.state_machine.state.name == "CLOSED", "it was told"
    assert heard.status == "UNAVAILABLE"
    assert "does not speak HTTP/2 as it should" in str(heard.ends[0])


def test_windows_are_large_from_the_start() -> None:
    link, _, _ = opened(Peer())
    assert link.http2.local_flow_control_window(1) == 16 << 20
    assert link.http2.remote_settings.enable_push == 0


def test_a_receiver_that_fails_ends_its_call_alone(failures: list[Failure]) -> None:
    peer = Peer()
    link, _, heard = opened(peer)
    _, others = peer.open()
    heard.then = lambda: next(iter(()))
    link.pump()
    for stream_id in (1, 3):
        link.http2.send_headers(stream_id, HEADERS)
        link.http2.send_data(stream_id, framed(b"one") + framed(b"two"))
    link.pump()
    assert failures.pop().check(StopIteration)
    assert heard.messages == [b"one"]
    assert heard.status == "INTERNAL"
    assert [reset.stream_id for reset in link.of(StreamReset)] == [1]
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
    link, stream, heard = opened(Peer(message_bytes_max=100))
    with pytest.raises(RpcError) as refused:
        stream.send([b"short", bytes(101)])
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    stream.send([b"next"])
    link.pump()
    assert link.data(1) == framed(b"next")
    assert not heard.ends


def test_calls_leave_nothing_that_must_be_searched_for() -> None:
    """
    What a call made is gone when it is over: no garbage for the collector.
    """
    peer = Peer()
    peer.call().addErrback(lambda _: None)
    link = peer.accept()
    link.answer(1, b"")
    for stream_id in range(3, 23, 2):
        peer.call()
        link.pump()
        link.answer(stream_id, b"")
    gc.collect()
    seen = weakref.WeakSet[Stream]()
    gc.disable()
    try:
        for stream_id in range(23, 43, 2):
            call = peer.call()
            seen.update(link.protocol._streams.values())
            assert seen
            link.pump()
            link.answer(stream_id, b"")
            assert call.called
        assert not list(seen)
    finally:
        gc.enable()
