"""
HTTP/2 on a Twisted transport: `h2` knows the protocol, this module what its frames mean for calls. `h2` handles
greetings, headers, the states of streams, flow control of sent data, and pings; it does not see received plain DATA
frames (frames.py), and does not need them.

Keepalive: a TCP connection does not show whether a silent peer with calls to answer is still there.
"""

from collections.abc import Callable
from typing import Protocol as Duck

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IConsumer, IDelayedCall, IReactorTime, ISSLTransport, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.frames import (
    FrameReader,
    FrameTooLong,
    FrameWriter,
    last_stream_of_goaway,
    window_update,
)
from kgateway.broker.seaweed.grpc.status import CallNotProcessed, RpcError, Status, of_reset
from kgateway.broker.seaweed.grpc.stream import Limits, ReceiveWindow, Stream


class Keepalive:
    """
    Pings a silent peer that has something to answer, and calls `gone` if the ping is not answered.
    """

    def __init__(
        self,
        clock: IReactorTime,
        limits: Limits,
        is_owed: Callable[[], bool],
        ping: Callable[[], None],
        gone: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._is_owed = is_owed
        self._ping = ping
        self._gone = gone
        self._heard_at = clock.seconds()
        self._is_asked = False
        self._timer: IDelayedCall = clock.callLater(limits.silent_s, self._look)

    def heard(self) -> None:
        self._heard_at = self._clock.seconds()
        self._is_asked = False

    def stop(self) -> None:
        if self._timer.active():
            self._timer.cancel()

    def _look(self) -> None:
        if self._is_asked:
            self._gone()
            return
        left = self._heard_at + self._limits.silent_s - self._clock.seconds()
        if left > 0:
            self._timer = self._clock.callLater(left, self._look)
        elif not self._is_owed():
            self._timer = self._clock.callLater(self._limits.silent_s, self._look)
        else:
            self._is_asked = True
            self._ping()
            self._timer = self._clock.callLater(self._limits.ping_answer_s, self._look)


class ITransport(ITCPTransport, IConsumer):
    pass


def greeting(window_bytes: int) -> H2Connection:
    """
    A client's connection with its greeting to send: the peer may send this many bytes on one stream, and on all.
    """
    http2 = H2Connection(H2Configuration(client_side=True))
    settings = {SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: window_bytes}
    http2.local_settings = Settings(client=True, initial_values=settings)
    http2.initiate_connection()
    http2.increment_flow_control_window(window_bytes - http2.inbound_flow_control_window)
    return http2


_STREAM_ID_MAX = (1 << 31) - 1
_PING = b"kgateway"


class ConnectionOwner(Duck):
    def changed(self, connection: "Connection") -> None:
        """
        Called when the connection is made, may have room for a call, takes no more calls, or is gone.
        """


class Connection(Protocol):
    """
    A connection to one peer. It takes calls from when the peer has said that it speaks HTTP/2 until either side goes
    away.
    """

    transport: ITransport

    def __init__(self, authority: str, owner: ConnectionOwner, clock: IReactorTime, limits: Limits) -> None:
        self.takes_calls = self.is_gone = False
        self._authority = authority
        self._owner = owner
        self._clock = clock
        self._limits = limits
        self._http2 = greeting(limits.window_bytes)
        self._frames = FrameReader()
        self._streams: dict[int, Stream] = {}
        self._window = ReceiveWindow(limits.window_bytes)
        self._ready: Deferred[None] | None = None
        self._closing: IDelayedCall | None = None
        self._is_ready = self._is_closed = False
        self._why = ""

    def connectionMade(self) -> None:
        if ITCPTransport.providedBy(self.transport):
            self.transport.setTcpNoDelay(True)
        self._writer = FrameWriter(self._http2, self.transport, self._clock, self._stalled)
        self.transport.registerProducer(self._writer, True)
        self._keepalive = Keepalive(self._clock, self._limits, self._is_owed, self._ping, self._give_up)
        self._owner.changed(self)
        self._writer.write()

    def ready(self) -> Deferred[None]:
        """
        Fires when the peer has said that it speaks HTTP/2; fails with an RpcError if the connection is lost before.
        """
        if self.is_gone:
            return fail(RpcError(Status.UNAVAILABLE, self._why))
        if self._is_ready:
            return succeed(None)
        self._ready = Deferred()
        return self._ready

    @property
    def has_room(self) -> bool:
        return self.takes_calls and len(self._streams) < self._http2.remote_settings.max_concurrent_streams

    def start(self, stream: Stream) -> None:
        stream_id = self._http2.get_next_available_stream_id()
        scheme = "https" if ISSLTransport.providedBy(self.transport) else "http"
        self._http2.send_headers(stream_id, stream.request.headers(scheme, self._authority, self._clock.seconds()))
        stream.begin(self, stream_id)
        self._streams[stream_id] = stream
        self._writer.wake(stream)
        self._writer.soon()
        if stream_id == _STREAM_ID_MAX:
            self._retire()

    def wake(self, stream: Stream) -> None:
        self._writer.wake(stream)

    def drop(self, stream: Stream) -> None:
        if not self._is_closed:
            self._http2.reset_stream(stream.id, ErrorCodes.CANCEL)
            self._writer.soon()
            self._forget(stream)

    def close(self, error: RpcError) -> None:
        """
        End all calls with this error, and close when what is written has been sent, or could not be in time.
        """
        if self._is_closed:
            return
        self._why = error.message
        self._stop()
        self._http2.close_connection()
        self.transport.write(self._http2.data_to_send())
        self.transport.unregisterProducer()  # one that is paused would keep the connection open
        self.transport.loseConnection()
        self._closing = self._clock.callLater(self._limits.close_s, self.transport.abortConnection)
        self._end_all(error)

    def abort(self, why: str) -> None:
        if not self.is_gone:
            self._why = self._why or why
            self._stop()
            self.transport.abortConnection()

    def _stalled(self) -> None:
        self.abort("this process was suspended for some seconds while it was sending")

    def dataReceived(self, data: bytes) -> None:
        self._keepalive.heard()
        self._writer.held = True
        try:
            self._receive(data)
        except (ProtocolError, FrameTooLong) as error:
            self.transport.write(self._http2.data_to_send())  # h2's answer to that
            self.abort(f"the peer violates HTTP/2: {error}")
        self._writer.write()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop()
        self.is_gone = True
        if self._closing and self._closing.active():
            self._closing.cancel()
        self._why = self._why or reason.getErrorMessage()
        if self._ready and not self._ready.called:
            self._ready.errback(RpcError(Status.UNAVAILABLE, self._why))
        self._owner.changed(self)
        self._end_all(RpcError(Status.UNAVAILABLE, f"{self._authority}: {self._why}"))

    def _receive(self, data: bytes) -> None:
        for stream_id, part in self._frames.feed(data):
            if self._is_closed:
                return
            if stream_id:
                self._take_data(stream_id, part)
            elif (last_stream := last_stream_of_goaway(part)) is not None:
                self._go_away(last_stream)
            else:
                for event in self._http2.receive_data(part):
                    self._happened(event)

    def _take_data(self, stream_id: int, data: bytes) -> None:
        """
        Take bytes of messages; those of a call that is over count for flow control, too.
        """
        if freed := self._window.take(len(data)):
            self._writer.put(window_update(0, freed))
        stream = self._streams.get(stream_id)
        if stream:
            if freed := stream.window.take(len(data)):
                self._writer.put(window_update(stream_id, freed))
            stream.take_data(data)

    def _happened(self, event: Event) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._take_settings()
        elif isinstance(event, ResponseReceived | TrailersReceived | DataReceived | StreamEnded | StreamReset):
            stream = self._streams.get(event.stream_id)
            if stream:
                self._happened_to(stream, event)

    def _happened_to(self, stream: Stream, event: Event) -> None:
        match event:
            case ResponseReceived() | TrailersReceived():
                stream.take_headers(event.headers)
            case DataReceived():
                self._http2.acknowledge_received_data(event.flow_controlled_length, stream.id)
                stream.take_data(event.data)
            case StreamEnded():
                if not stream.outgoing.is_ended:
                    self._http2.reset_stream(stream.id, ErrorCodes.NO_ERROR)  # the peer does not listen any more
                self._forget(stream)
                stream.take_end()
            case StreamReset():
                self._forget(stream)
                stream.end(of_reset(event.error_code))

    def _take_settings(self) -> None:
        """
        The peer has sent its settings, for the first time or again.
        """
        if self._is_ready:
            self._owner.changed(self)
            return
        self._is_ready = self.takes_calls = True
        if self._ready and not self._ready.called:
            self._ready.callback(None)

    def _go_away(self, last_stream: int) -> None:
        """
        The peer takes no more calls, and has not processed those after this one.
        """
        error = CallNotProcessed(f"{self._authority} is going away and has not accepted the call")
        refused = [stream for stream in self._streams.values() if stream.id > last_stream]
        self._retire()
        for stream in refused:
            self._forget(stream)
            stream.end(error)

    def _retire(self) -> None:
        """
        Take no more calls, and close when the open ones have ended.
        """
        self.takes_calls = False
        self._owner.changed(self)
        self._leave_if_idle()

    def _forget(self, stream: Stream) -> None:
        self._streams.pop(stream.id, None)
        self._writer.forget(stream)
        self._owner.changed(self)
        self._leave_if_idle()

    def _leave_if_idle(self) -> None:
        if not (self.takes_calls or self._streams):
            self.close(RpcError(Status.UNAVAILABLE, "no calls are left"))

    def _end_all(self, error: RpcError) -> None:
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end(error)

    def _is_owed(self) -> bool:
        return bool(self._streams)

    def _ping(self) -> None:
        self._http2.ping(_PING)
        self._writer.soon()

    def _give_up(self) -> None:
        self.abort(f"no response to a ping within {self._limits.ping_answer_s:g} s")

    def _stop(self) -> None:
        """
        Take no more calls, and do nothing more for the open ones.
        """
        self._is_closed, self.takes_calls = True, False
        self._keepalive.stop()
        self._writer.stop()
