"""
HTTP/2 frames: parsed from what a connection receives, and built from the messages that streams send.

Nearly all that arrives are plain DATA frames. They are parsed here, because `h2` takes ten times as long for one as the
message in it does. All other frames are left to `h2` whole.

    0                 3      4       5                   9
    | length of payload | type | flags | stream, big endian | payload ...

What streams send in one turn of the reactor is written at its end, or after received data has been handled: many
messages then share a frame, and many frames a write.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from struct import Struct

from h2.connection import H2Connection
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime, ITransport
from zope.interface import implementer

from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.tcp import write_now

FRAME_BYTES_MAX = 1 << 14  # of a payload, unless more was agreed on
_HEAD = Struct(">HBBBI")
_DATA = 0
_GOAWAY = 7
_WINDOW_UPDATE = 8
_GOAWAY_FIELDS = Struct(">II")
_WINDOW_UPDATE_FRAME = Struct(">HBBBII")


class FrameTooLong(Exception):
    pass


class FrameReader:
    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """
        The frames that these bytes complete: of a plain DATA frame its stream and payload, of any other 0 and the
        frame.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, size = 0, len(data)
        while size - at >= _HEAD.size:
            high, low, kind, flags, stream_id = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if length > FRAME_BYTES_MAX:
                raise FrameTooLong(f"a frame of {length} bytes; the agreed maximum is {FRAME_BYTES_MAX}")
            end = at + _HEAD.size + length
            if end > size:
                break
            if kind == _DATA and not flags and stream_id:
                yield stream_id, data[at + _HEAD.size : end]
            else:
                yield 0, data[at:end]
            at = end
        self._rest = data[at:]


def last_stream_of_goaway(frame: bytes) -> int | None:
    """
    The last stream that the peer still answers, if the frame is a GOAWAY.
    """
    if frame[3] != _GOAWAY or len(frame) < _HEAD.size + _GOAWAY_FIELDS.size:
        return None
    last_stream: int = _GOAWAY_FIELDS.unpack_from(frame, _HEAD.size)[0]
    return last_stream & 0x7FFFFFFF


def window_update(stream_id: int, increment: int) -> bytes:
    """
    The frame that lets the peer send more on a stream, or on the connection, 0.
    """
    return _WINDOW_UPDATE_FRAME.pack(0, 4, _WINDOW_UPDATE, 0, stream_id, increment)


STALLED_S = 3.0  # no turn of a busy reactor is later than that, and any lock runs out much later
WRITE_BYTES = 256 << 10  # handed to a transport at once: later messages wait for no more


@implementer(IPushProducer)
class FrameWriter:
    """
    Writes the frames of one connection. It is `held` while more may come to be written, until `write` is called.
    """

    def __init__(
        self, http2: H2Connection, transport: ITransport, clock: IReactorTime, stalled: Callable[[], None]
    ) -> None:
        self.held = False
        self._http2 = http2
        self._transport = transport
        self._clock = clock
        self._stalled = stalled  # called in place of a write that comes much too late
        self._sending: OrderedDict[Stream, None] = OrderedDict()  # that have something to send, the next one first
        self._own_frames: list[bytes] = []  # frames that h2 does not know of
        self._is_full = self._is_stopped = False
        self._call: IDelayedCall | None = None
        self._due = 0.0  # when the frames were to be written

    def wake(self, stream: Stream) -> None:
        if stream.outgoing.is_waiting:
            self._sending[stream] = None
            self.soon()

    def forget(self, stream: Stream) -> None:
        self._sending.pop(stream, None)

    def put(self, frame: bytes) -> None:
        """
        Add a frame of which h2 does not know.
        """
        self._own_frames.append(frame)

    def soon(self) -> None:
        if not (self._call or self.held or self._is_full or self._is_stopped):
            self._call, self._due = self._clock.callLater(0, self.write), self._clock.seconds()

    def write(self) -> None:
        """
        Write as much as the transport takes. What was to be written before this process stood still is dropped: another
        process may have taken over since.
        """
        self.held = False
        if self._call and self._clock.seconds() - self._due > STALLED_S:
            self._stalled()
            return
        self._cancel()
        while not (self._is_full or self._is_stopped):
            self._fill()
            data = b"".join((self._http2.data_to_send(), *self._own_frames))
            self._own_frames.clear()
            if not data:
                return
            write_now(self._transport, data)

    def stop(self) -> None:
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
        Make frames, one of each stream in turn, as far as the windows of HTTP/2 are open.
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
        outgoing, http2 = stream.outgoing, self._http2
        room = min(http2.local_flow_control_window(stream.id), http2.max_outbound_frame_size)
        if outgoing.size and room <= 0:
            return 0
        data = outgoing.take(room)
        outgoing.is_ended = outgoing.is_finished and not outgoing.size
        http2.send_data(stream.id, data, end_stream=outgoing.is_ended)
        return len(data)
