"""
Calls to a server by grpcio, over sockets.
"""

import threading
from subprocess import Popen
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from twisted.internet.defer import CancelledError, Deferred, gatherResults

from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from tests.broker.seaweed.grpc.conftest import channel_to, endpoint
from tests.broker.seaweed.grpc.grpcio_server import Server, method
from tests.broker.seaweed.real_reactor import reactor, until, wait

MIB = 1 << 20


class Told:
    """
    A stream, and Deferreds for what it reports.
    """

    def __init__(self, channel: Channel, name: str, timeout: float | None = None) -> None:
        self.messages: list[bytes] = []
        self.ended: Deferred[None] = Deferred()
        self._expected: list[tuple[int, Deferred[None]]] = []
        self.stream: Stream = channel.open(method(name), self._received, self._end, timeout)

    def until(self, count: int) -> Deferred[None]:
        """
        Fires when there are this many messages.
        """
        arrived: Deferred[None] = Deferred()
        self._expected.append((count, arrived))
        return arrived

    def _received(self, message: bytes) -> None:
        self.messages.append(message)
        for count, arrived in self._expected:
            if count == len(self.messages):
                arrived.callback(None)

    def _end(self, error: RpcError | None) -> None:
        if error:
            self.ended.errback(error)
        else:
            self.ended.callback(None)


def echoed(channel: Channel, value: bytes, timeout: float = 20) -> bytes:
    """
    The messages that an echo returns.
    """
    return wait(channel.call(method("Echo"), BytesValue(value=value), timeout)).value


def refusal(call: Deferred[Any]) -> RpcError:
    with pytest.raises(RpcError) as error:
        wait(call)
    return error.value


def test_a_message_is_answered(channel: Channel) -> None:
    assert echoed(channel, b"hello") == b"hello"


def test_a_short_message_does_not_wait_for_more(channel: Channel) -> None:
    echoed(channel, b"connected")
    (connection,) = channel._connections
    assert connection.transport.getTcpNoDelay()


def test_an_empty_message_is_one(channel: Channel) -> None:
    assert echoed(channel, b"") == b""


def test_many_calls_at_once_get_each_its_own_answer(channel: Channel) -> None:
    calls = [channel.call(method("Echo"), BytesValue(value=b"%d" % number), 20) for number in range(500)]
    assert [answer.value for answer in wait(gatherResults(calls))] == [b"%d" % number for number in range(500)]


def test_a_long_message_goes_there_and_back(channel: Channel) -> None:
    value = bytes(range(256)) * (64 * MIB // 256)
    assert echoed(channel, value) == value


def test_an_error_of_the_server_is_the_answer(channel: Channel) -> None:
    error = refusal(channel.call(method("Fail"), BytesValue(value='100 % "so"\nünd'.encode()), 20))
    assert (error.status, error.message) == (Status.FAILED_PRECONDITION, '100 % "so"\nünd')


def test_a_method_that_is_not_there_is_unimplemented(channel: Channel) -> None:
    assert refusal(channel.call(method("Nothing"), BytesValue(), 20)).status is Status.UNIMPLEMENTED


def test_the_server_sees_metadata(server: Server, channel: Channel) -> None:
    wait(channel.call(method("Echo"), BytesValue(), 20, metadata=[("authorization", "Bearer x")]))
    assert ("authorization", "Bearer x") in server.service.metadata
    assert ("user-agent", "kgateway") in server.service.metadata


def test_a_stream_of_the_server_comes_in_order_and_ends(channel: Channel) -> None:
    told = Told(channel, "Count")
    told.stream.send([b"20000"])
    told.stream.finish()
    wait(told.ended)
    assert told.messages == [b"%d" % number for number in range(20_000)]


def test_long_messages_of_a_stream_pass_windows_many_times(channel: Channel) -> None:
    sizes = [5 * MIB + number for number in range(20)]
    told = Told(channel, "Long")
    told.stream.send([b",".join(b"%d" % size for size in sizes)])
    told.stream.finish()
    wait(told.ended)
    assert [len(message) for message in told.messages] == sizes


def test_messages_go_both_ways_until_both_have_finished(channel: Channel) -> None:
    told = Told(channel, "Each")
    told.stream.send([b"%d" % number for number in range(5_000)])
    wait(told.until(5_000))
    told.stream.send([bytes(3 * MIB), b"last"])
    told.stream.finish()
    wait(told.ended)
    assert told.messages[:5_000] == [b"%d" % number for number in range(5_000)]
    assert told.messages[5_000:] == [bytes(3 * MIB), b"last"]


def test_a_server_may_end_before_all_was_sent(channel: Channel) -> None:
    told = Told(channel, "First")
    told.stream.send([b"first", bytes(80 * MIB)])
    wait(told.ended)
    assert told.messages == [b"first"]
    assert told.stream.outgoing.size == 0
    assert echoed(channel, b"next") == b"next"


def test_a_deadline_ends_a_call_here_and_there(server: Server, channel: Channel) -> None:
    assert refusal(channel.call(method("Slow"), BytesValue(), 0.2)).status is Status.DEADLINE_EXCEEDED
    assert server.service.is_over.acquire(timeout=20)
    assert echoed(channel, b"next") == b"next"


def test_a_cancelled_call_is_cancelled_there(server: Server, channel: Channel) -> None:
    echoed(channel, b"connected")
    call = channel.call(method("Slow"), BytesValue(), 20)
    echoed(channel, b"the slow one is on its way")
    assert server.service.has_begun.acquire(timeout=20)
    call.cancel()
    with pytest.raises(CancelledError):
        wait(call)
    echoed(channel, b"and it was told")
    assert server.service.is_over.acquire(timeout=20)


def test_a_cancelled_stream_leaves_the_connection_in_order(channel: Channel) -> None:
    told = Told(channel, "Long")
    told.stream.send([b",".join([b"1000000"] * 100)])
    told.stream.finish()
    wait(told.until(3))
    told.stream.cancel()
    assert refusal(told.ended).status is Status.CANCELLED
    for number in range(30):
        assert len(echoed(channel, bytes(MIB + number))) == MIB + number


def test_no_more_calls_run_than_the_server_takes() -> None:
    server = Server(None, ("grpc.max_concurrent_streams", 2))
    channel = channel_to(server.port)
    slow = [channel.call(method("Slow"), BytesValue(), 20) for _ in range(2)]
    waiting = [channel.call(method("Echo"), BytesValue(value=b"%d" % number), 20) for number in range(20)]
    for call in slow:
        call.addErrback(lambda failure: failure.trap(CancelledError))
    wait(Told(channel, "Count", timeout=0.2).ended.addErrback(lambda _: None))
    assert not any(call.called for call in waiting)
    slow[0].cancel()
    assert [answer.value for answer in wait(gatherResults(waiting))] == [b"%d" % number for number in range(20)]
    slow[1].cancel()
    wait(channel.close())
    server.stop()


def test_a_server_that_stops_gracefully_lets_calls_end() -> None:
    servers = [Server()]
    channel = Channel(lambda factory: endpoint(servers[-1].port).connect(factory), "somewhere", reactor)
    told = Told(channel, "Each")
    told.stream.send([b"before"])
    wait(told.until(1))
    servers.append(Server())
    stopping = threading.Thread(target=servers[0].stop, args=(20,))
    stopping.start()
    until(lambda: wait(_answered_or_refused(channel)) and servers[1].service.metadata)
    told.stream.send([b"after"])
    told.stream.finish()
    wait(told.ended)
    assert told.messages == [b"before", b"after"]
    stopping.join()
    wait(channel.close())
    servers[1].stop()


def _answered_or_refused(channel: Channel) -> Deferred[bool]:
    """
    A server that has begun to stop still answers, fails calls, or leaves a call until its grace period is over.
    """
    call = channel.call(method("Echo"), BytesValue(), 1)
    return call.addErrback(lambda failure: failure.trap(RpcError)).addCallback(lambda _: True)


def test_a_server_killed_amid_fails_what_was_open(process: Popen[str]) -> None:
    assert process.stdout
    channel = channel_to(int(process.stdout.readline()))
    told = Told(channel, "Each")
    told.stream.send([b"one"])
    wait(told.until(1))
    call = channel.call(method("Slow"), BytesValue(), 20)
    process.kill()
    process.wait()
    assert refusal(told.ended).status is Status.UNAVAILABLE
    assert refusal(call).status is Status.UNAVAILABLE
    error = refusal(channel.call(method("Echo"), BytesValue(), 20))
    assert error.status is Status.UNAVAILABLE
    assert "Connection refused" in error.message
    wait(channel.close())


def test_a_channel_connects_again_when_its_server_is_back(process: Popen[str]) -> None:
    assert process.stdout
    ports = [int(process.stdout.readline())]
    channel = Channel(lambda factory: endpoint(ports[-1]).connect(factory), "somewhere", reactor)
    echoed(channel, b"there")
    process.kill()
    process.wait()
    assert refusal(channel.call(method("Echo"), BytesValue(), 20)).status is Status.UNAVAILABLE
    server = Server()
    ports.append(server.port)
    assert echoed(channel, b"back") == b"back"
    wait(channel.close())
    server.stop()


def test_closing_ends_open_calls(channel: Channel) -> None:
    told = Told(channel, "Each")
    told.stream.send([b"one"])
    wait(told.until(1))
    wait(channel.close())
    assert refusal(told.ended).status is Status.CANCELLED
