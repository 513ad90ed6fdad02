"""
The way of streams' messages into frames and onto the transport.

What streams send in one turn of the reactor is written at its end, or after what was received has been worked off: many
messages then share a frame, and many frames a write.
"""

from collections import OrderedDict
from collections.abc import Callable

from h2.connection import H2Connection
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime, ITransport
from zope.interface import implementer

from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.sending import write_now

OVERSLEPT_S = 3.0  # later than that is no turn of the reactor, however busy, and much sooner than any lock runs out
WRITE_BYTES = 256 << 10  # of messages that a transport is given at once: what comes next waits for no more


@implementer(IPushProducer)
class Writer:
    """
    Of one connection. It is `held` while more may come to be written, until it is told to write.
    """

    def __init__(
        self, http2: H2Connection, transport: ITransport, clock: IReactorTime, overslept: Callable[[], None]
    ) -> None:
        self.held = False
        self._http2 = http2
        self._transport = transport
        self._clock = clock
        self._overslept = overslept  # called in place of a write that comes much too late
        self._sending: OrderedDict[Stream, None] = (
            OrderedDict()
        )  # those that have something to send, the next one first
        self._beside: list[bytes] = []  # frames that h2 does not know of
        self._is_full = self._is_stopped = False
        self._call: IDelayedCall | None = None
        self._due = 0.0  # when it was to be written

    def wake(self, stream: Stream) -> None:
        """
        The stream has something to send.
        """
        if stream.outgoing.is_waiting:
            self._sending[stream] = None
            self.soon()

    def forget(self, stream: Stream) -> None:
        """
        It sends no more.
        """
        self._sending.pop(stream, None)

    def put(self, frame: bytes) -> None:
        """
        Write a frame beside those of h2.
        """
        self._beside.append(frame)

    def soon(self) -> None:
        """
        Write at the end of this turn.
        """
        if not (self._call or self.held or self._is_full or self._is_stopped):
            self._call, self._due = self._clock.callLater(0, self.write), self._clock.seconds()

    def write(self) -> None:
        """
        Write what there is, as far as the transport takes it. What was to be written before this process stood still is
        not: others may have done meanwhile what it was about.
        """
        self.held = False
        if self._call and self._clock.seconds() - self._due > OVERSLEPT_S:
            self._overslept()
            return
        self._cancel()
        while not (self._is_full or self._is_stopped):
            self._fill()
            data = b"".join((self._http2.data_to_send(), *self._beside))
            self._beside.clear()
            if not data:
                return
            write_now(self._transport, data)

    def stop(self) -> None:
        """
        Write no more of what streams send.
        """
        self._is_stopped = True
        self._sending.clear()
        self._cancel()

    def pauseProducing(self) -> None:
        self._is_full = True

    def resumeProducing(self) -> None:
        self._is_full = False
        self.write()

    def stopProducing(self) -> None:
        self.stop()

    def _cancel(self) -> None:
        if self._call and self._call.active():
            self._call.cancel()
        self._call = None

    def _fill(self) -> None:
        """
        Make frames, of each stream one in turn, as far as HTTP/2's windows are open.
        """
        filled, shut = 0, []
        while self._sending and filled < WRITE_BYTES:
            stream, _ = self._sending.popitem(last=False)
            size = self._frame(stream)
            filled += size
            if stream.outgoing.is_waiting:
                if size:
                    self._sending[stream] = None
                else:
                    shut.append(stream)
        self._sending.update(dict.fromkeys(shut))

    def _frame(self, stream: Stream) -> int:
        """
        Make the stream's next frame; how much is in it.
        """
        outgoing, http2 = stream.outgoing, self._http2
        room = min(http2.local_flow_control_window(stream.id), http2.max_outbound_frame_size)
        if outgoing.size and room <= 0:
            return 0
        data = outgoing.take(room)
        outgoing.is_ended = outgoing.is_finished and not outgoing.size
        http2.send_data(stream.id, data, end_stream=outgoing.is_ended)
        return len(data)
