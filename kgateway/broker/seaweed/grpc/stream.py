"""
One call: messages out, messages in, and one end.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.broker.seaweed.grpc.call_headers import RequestHeaders, ResponseHeaders
from kgateway.broker.seaweed.grpc.messages import MessageReader, MessageWriter
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.log_messages import CANNOT_HANDLE_END, CANNOT_HANDLE_MESSAGE


@dataclass(frozen=True, slots=True)
class Limits:
    message_bytes_max: int = 1 << 30  # either way
    window_bytes: int = 16 << 20  # a peer may send this much on one stream, and on all, without an update
    connect_s: float = 10  # until the peer has said that it speaks HTTP/2
    silent_s: float = 60  # of a peer with calls to answer, before it is pinged
    ping_answer_s: float = 20
    close_s: float = 5  # until what is written has left


class ReceiveWindow:
    """
    The receive window of one stream, or of all. Received data is consumed at once; the peer gets a window update when
    half of the window is used, so that the peer never stops, and few updates are written.
    """

    __slots__ = ("_enough", "_used")

    def __init__(self, size: int) -> None:
        self._enough = size // 2
        self._used = 0

    def take(self, size: int) -> int:
        """
        Count received bytes; the increment of the window update to be sent, if any.
        """
        self._used += size
        if self._used < self._enough:
            return 0
        freed, self._used = self._used, 0
        return freed


Received = Callable[[bytes], object]
Ended = Callable[[RpcError | None], object]


class StreamOwner(Protocol):
    """
    The owner of a stream until its end: first the channel, where it waits, then a connection.
    """

    def wake(self, stream: "Stream") -> None:
        """
        The stream has something to send.
        """

    def drop(self, stream: "Stream") -> None:
        """
        The stream ends here, before its peer has ended it.
        """


class Stream:
    """
    The two directions of a call. `received` is called with each message of the peer, then `ended` once: with `None` if
    the call has succeeded. Messages sent before there is a connection wait for it.
    """

    _log = Logger()

    def __init__(
        self, request: RequestHeaders, received: Received, ended: Ended, carrier: StreamOwner, limits: Limits
    ) -> None:
        self.request = request
        self.outgoing = MessageWriter(limits.message_bytes_max)
        self.is_over = False
        self.id = 0  # in HTTP/2, once it has begun
        self.window = ReceiveWindow(limits.window_bytes)
        self._received = received
        self._ended = ended
        self._carrier = carrier
        self._answer = ResponseHeaders()
        self._incoming = MessageReader(limits.message_bytes_max)
        self._timer: IDelayedCall | None = None

    def send(self, messages: Sequence[bytes]) -> None:
        """
        Send serialized messages; after the end of the call they are dropped. Raises RpcError if one is too long:
        then none is sent.
        """
        if self.outgoing.is_finished and not self.is_over:
            raise ValueError("a finished stream cannot send more")
        if messages and not self.is_over:
            self.outgoing.put(messages)
            self._carrier.wake(self)

    def finish(self) -> None:
        """
        End our side of the stream, after all that was sent.
        """
        if not (self.outgoing.is_finished or self.is_over):
            self.outgoing.is_finished = True
            self._carrier.wake(self)

    def cancel(self) -> None:
        self.break_off(RpcError(Status.CANCELLED, "the call was cancelled here"))

    def limit(self, clock: IReactorTime, seconds: float) -> None:
        error = RpcError(Status.DEADLINE_EXCEEDED, f"{self.request.path} did not end within {seconds:g} s")
        self._timer = clock.callLater(max(0, seconds), self.break_off, error)

    def begin(self, carrier: StreamOwner, stream_id: int) -> None:
        self._carrier, self.id = carrier, stream_id

    def take_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """
        Take headers that the peer sends before its messages or after them.
        """
        self._answer.add(headers)

    def take_data(self, data: bytes) -> None:
        if not self._answer.has_messages:
            return
        try:
            for message in self._incoming.feed(data):
                self._received(message)
                if self.is_over:
                    return
        except RpcError as error:
            self.break_off(error)
        except Exception:
            self._log.failure(CANNOT_HANDLE_MESSAGE, path=self.request.path)
            self.break_off(RpcError(Status.INTERNAL, "the received messages could not be handled"))

    def take_end(self) -> None:
        error = self._answer.outcome()
        if error is None and self._incoming.is_amid:
            error = RpcError(Status.INTERNAL, "the response ended within a message")
        self.end(error)

    def break_off(self, error: RpcError) -> None:
        """
        End the stream before its peer does.
        """
        if not self.is_over:
            self._carrier.drop(self)
            self.end(error)

    def end(self, error: RpcError | None) -> None:
        """
        End the stream without notice to the peer.
        """
        if self.is_over:
            return
        self.is_over = True
        self.outgoing.clear()
        if self._timer and self._timer.active():
            self._timer.cancel()
        try:
            self._ended(error)
        except Exception:
            self._log.failure(CANNOT_HANDLE_END, path=self.request.path)
