"""
One call: messages out, messages in, and one end.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.broker.seaweed.grpc.answer import Answer
from kgateway.broker.seaweed.grpc.incoming import Incoming
from kgateway.broker.seaweed.grpc.limits import Limits
from kgateway.broker.seaweed.grpc.outgoing import Outgoing
from kgateway.broker.seaweed.grpc.request import Request
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.window import Window

Received = Callable[[bytes], object]
Ended = Callable[[RpcError | None], object]


class Carrier(Protocol):
    """
    Who has a stream until its end: first the channel, where it waits, then a connection.
    """

    def wake(self, stream: "Stream") -> None:
        """
        It has something to send.
        """

    def drop(self, stream: "Stream") -> None:
        """
        It ends here, before its peer has ended it.
        """


class Stream:
    """
    `received` is called with each message of the peer, `ended` once, with nothing after it: with `None` where the call
    has ended well. Messages sent before there is a connection wait for it.
    """

    _log = Logger()

    def __init__(self, request: Request, received: Received, ended: Ended, carrier: Carrier, limits: Limits) -> None:
        self.request = request
        self.outgoing = Outgoing(limits.message_bytes_max)
        self.is_over = False
        self.id = 0  # of HTTP/2, from when it has begun
        self.window = Window(limits.window_bytes)
        self._received = received
        self._ended = ended
        self._carrier = carrier
        self._answer = Answer()
        self._incoming = Incoming(limits.message_bytes_max)
        self._timer: IDelayedCall | None = None

    @property
    def pending(self) -> int:
        """
        How many bytes wait to be sent.
        """
        return self.outgoing.size

    def send(self, messages: Sequence[bytes]) -> None:
        """
        Send messages that are serialized already; where the call is over they go nowhere. An RpcError where one is too
        long: then none is sent.
        """
        if self.outgoing.is_finished and not self.is_over:
            raise ValueError("a stream that is finished sends no more")
        if messages and not self.is_over:
            self.outgoing.put(messages)
            self._carrier.wake(self)

    def finish(self) -> None:
        """
        Tell the peer, behind what was sent, that no more comes.
        """
        if not (self.outgoing.is_finished or self.is_over):
            self.outgoing.is_finished = True
            self._carrier.wake(self)

    def cancel(self) -> None:
        """
        End it now, as CANCELLED.
        """
        self.break_off(RpcError(Status.CANCELLED, "the call was cancelled here"))

    def limit(self, clock: IReactorTime, seconds: float) -> None:
        """
        Let it end after so long.
        """
        error = RpcError(Status.DEADLINE_EXCEEDED, f"{self.request.path} did not end within {seconds:g} s")
        self._timer = clock.callLater(max(0, seconds), self.break_off, error)

    def begin(self, carrier: Carrier, stream_id: int) -> None:
        """
        It has a connection.
        """
        self._carrier, self.id = carrier, stream_id

    def take_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """
        What the peer says before its messages or behind them.
        """
        self._answer.add(headers)

    def take_data(self, data: bytes) -> None:
        """
        Bytes of the peer's messages.
        """
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
            self._log.failure("what {path} received could not be taken", path=self.request.path)
            self.break_off(RpcError(Status.INTERNAL, "what was received could not be taken"))

    def take_end(self) -> None:
        """
        The peer has said all.
        """
        error = self._answer.outcome()
        if error is None and self._incoming.is_amid:
            error = RpcError(Status.INTERNAL, "the answer ended amid a message")
        self.end(error)

    def break_off(self, error: RpcError) -> None:
        """
        End it before its peer does.
        """
        if not self.is_over:
            self._carrier.drop(self)
            self.end(error)

    def end(self, error: RpcError | None) -> None:
        """
        Its connection has nothing to do with it any more.
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
            self._log.failure("the end of {path} could not be taken", path=self.request.path)
