"""
HTTP/2 on a transport of Twisted: `h2` knows the protocol, here is what its frames mean for calls.
"""

from typing import Protocol as Duck

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
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime, ISSLTransport, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.frames import Frames, FrameTooLong, last_stream_of_goaway, window_update
from kgateway.broker.seaweed.grpc.http2 import ITransport, greeting
from kgateway.broker.seaweed.grpc.keepalive import Keepalive
from kgateway.broker.seaweed.grpc.limits import Limits
from kgateway.broker.seaweed.grpc.status import NotTaken, RpcError, Status, of_reset
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.grpc.window import Window
from kgateway.broker.seaweed.grpc.writer import Writer

_STREAM_ID_MAX = (1 << 31) - 1
_PING = b"kgateway"


class Owner(Duck):
    """
    Whose connection it is.
    """

    def changed(self, connection: "Connection") -> None:
        """
        It is made, may have room for a call, takes no more calls, or is gone.
        """


class Connection(Protocol):
    """
    To one peer. It takes calls from when the peer has said that it speaks HTTP/2 until either side goes away.
    """

    transport: ITransport

    def __init__(self, authority: str, owner: Owner, clock: IReactorTime, limits: Limits) -> None:
        self.takes_calls = self.is_gone = False
        self._authority = authority
        self._owner = owner
        self._clock = clock
        self._limits = limits
        self._http2 = greeting(limits.window_bytes)
        self._frames = Frames()
        self._streams: dict[int, Stream] = {}
        self._window = Window(limits.window_bytes)
        self._settling: Deferred[None] | None = None
        self._closing: IDelayedCall | None = None
        self._is_settled = self._is_closed = False
        self._why = ""

    def connectionMade(self) -> None:
        if ITCPTransport.providedBy(self.transport):
            self.transport.setTcpNoDelay(True)
        self._writer = Writer(self._http2, self.transport, self._clock, self._overslept)
        self.transport.registerProducer(self._writer, True)
        self._keepalive = Keepalive(self._clock, self._limits, self._is_owed, self._ping, self._give_up)
        self._owner.changed(self)
        self._writer.write()

    def settled(self) -> Deferred[None]:
        """
        Fires when the peer has said that it speaks HTTP/2; an RpcError where the connection is lost before.
        """
        if self.is_gone:
            return fail(RpcError(Status.UNAVAILABLE, self._why))
        if self._is_settled:
            return succeed(None)
        self._settling = Deferred()
        return self._settling

    @property
    def has_room(self) -> bool:
        """
        Whether a call can begin.
        """
        return self.takes_calls and len(self._streams) < self._http2.remote_settings.max_concurrent_streams

    def start(self, stream: Stream) -> None:
        """
        Begin a call.
        """
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
        End all calls with this error, and go when what is written has left, or could not in time.
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
        """
        Go at once.
        """
        if not self.is_gone:
            self._why = self._why or why
            self._stop()
            self.transport.abortConnection()

    def _overslept(self) -> None:
        self.abort("this process stood still for some seconds, amid what it was about to send")

    def dataReceived(self, data: bytes) -> None:
        self._keepalive.heard()
        self._writer.held = True
        try:
            self._receive(data)
        except (ProtocolError, FrameTooLong) as error:
            self.transport.write(self._http2.data_to_send())  # what h2 has to say to that
            self.abort(f"the peer does not speak HTTP/2 as it should: {error}")
        self._writer.write()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop()
        self.is_gone = True
        if self._closing and self._closing.active():
            self._closing.cancel()
        self._why = self._why or reason.getErrorMessage()
        if self._settling and not self._settling.called:
            self._settling.errback(RpcError(Status.UNAVAILABLE, self._why))
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
        Bytes of messages; those of a call that is over count too.
        """
        if freed := self._window.take(len(data)):
            self._writer.put(window_update(0, freed))
        stream = self._streams.get(stream_id)
        if stream:
            if freed := stream.window.take(len(data)):
                self._writer.put(window_update(stream_id, freed))
            stream.take_data(data)

    def _happened(self, event: Event) -> None:
        """
        What h2 makes of a frame.
        """
        if isinstance(event, RemoteSettingsChanged):
            self._settle()
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

    def _settle(self) -> None:
        """
        The peer has said what it takes, for the first time or anew.
        """
        if self._is_settled:
            self._owner.changed(self)
            return
        self._is_settled = self.takes_calls = True
        if self._settling and not self._settling.called:
            self._settling.callback(None)

    def _go_away(self, last_stream: int) -> None:
        """
        The peer takes no more calls, and has not taken those after this one.
        """
        error = NotTaken(f"{self._authority} is going away and has not taken the call")
        refused = [stream for stream in self._streams.values() if stream.id > last_stream]
        self._retire()
        for stream in refused:
            self._forget(stream)
            stream.end(error)

    def _retire(self) -> None:
        """
        Take no more calls, and go when those that are open have ended.
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
        self.abort(f"no answer to a ping within {self._limits.ping_answer_s:g} s")

    def _stop(self) -> None:
        """
        Take no more calls, and do nothing more for those there are.
        """
        self._is_closed, self.takes_calls = True, False
        self._keepalive.stop()
        self._writer.stop()
