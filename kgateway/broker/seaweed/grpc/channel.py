"""
Calls to one address.
"""

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.connecting import Connect, Connections, connected
from kgateway.broker.seaweed.grpc.connection import Connection
from kgateway.broker.seaweed.grpc.limits import Limits
from kgateway.broker.seaweed.grpc.method import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.request import Metadata, Request
from kgateway.broker.seaweed.grpc.status import NotTaken, RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Ended, Received, Stream
from kgateway.broker.seaweed.grpc.unary import Unary

_NOT_TAKEN_S = 0.05  # until a call is made again that was not taken


class Channel:
    """
    Makes its connection when a call needs one, and another when that is gone. No call is tried again but one with a
    single message that the peer has not taken, until its time is over.

    `metadata` goes with each call, before that of the call.
    """

    _log = Logger()

    def __init__(
        self,
        connect: Connect,
        authority: str,
        clock: IReactorTime,
        metadata: Metadata = (),
        limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    ) -> None:
        self.authority = authority
        self._connect = connect
        self._clock = clock
        self._metadata = tuple(metadata)
        self._limits = limits
        self._waiting: dict[Stream, None] = {}  # for a connection, or for room on it, in order
        self._attempt: Deferred[None] | None = None
        self._current: Connection | None = None
        self._connections: set[Connection] = set()  # all that are not gone
        self._closed: list[Deferred[None]] = []
        self._is_closed = False

    def call(
        self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float, metadata: Metadata = ()
    ) -> Deferred[ResponseT]:
        """
        The answer to a message; an RpcError where there is none in so many seconds.
        """
        deadline = self._clock.seconds() + timeout

        def attempt() -> Deferred[ResponseT]:
            left = deadline - self._clock.seconds()
            return self._call_once(method, request, left, metadata).addErrback(again)

        def again(failure: Failure) -> Deferred[ResponseT]:
            failure.trap(NotTaken)
            if deadline - self._clock.seconds() <= _NOT_TAKEN_S:
                raise RpcError(Status.DEADLINE_EXCEEDED, f"{method.path} was not taken within {timeout:g} s")
            return deferLater(self._clock, _NOT_TAKEN_S).addCallback(lambda _: attempt())

        return attempt()

    def _call_once(
        self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float, metadata: Metadata
    ) -> Deferred[ResponseT]:
        unary = Unary(method.response)
        unary.stream = stream = self.open(method, unary.received, unary.ended, timeout, metadata)
        try:
            stream.send([request.SerializeToString()])
        except RpcError as too_long:
            stream.break_off(too_long)
        stream.finish()
        return unary.answered

    def open(
        self,
        method: Method[RequestT, ResponseT],
        received: Received,
        ended: Ended,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Stream:
        """
        A stream of messages. What happens is told after this has returned.
        """
        deadline = None if timeout is None else self._clock.seconds() + timeout
        request = Request(method.path, (*self._metadata, *metadata), deadline)
        stream = Stream(request, received, ended, self, self._limits)
        if timeout is not None:
            stream.limit(self._clock, timeout)
        if self._is_closed:
            self._clock.callLater(0, stream.end, self._closed_error())
        else:
            self._waiting[stream] = None
            self._go_on()
        return stream

    def close(self) -> Deferred[None]:
        """
        End all calls, as CANCELLED; fires when no connection is left.
        """
        self._is_closed = True
        if self._attempt:
            self._attempt.cancel()
        self._end_waiting(self._closed_error())
        for connection in tuple(self._connections):
            connection.close(self._closed_error())
        if not self._connections:
            return succeed(None)
        self._closed.append(Deferred())
        return self._closed[-1]

    def wake(self, stream: Stream) -> None:
        """
        What a stream sends while it waits, waits with it.
        """

    def drop(self, stream: Stream) -> None:
        self._waiting.pop(stream, None)

    def changed(self, connection: Connection) -> None:
        if connection is self._current and not connection.takes_calls:
            self._current = None
        if connection.is_gone:
            self._connections.discard(connection)
        else:
            self._connections.add(connection)
        self._go_on()
        while self._closed and not self._connections:
            self._closed.pop().callback(None)

    def _go_on(self) -> None:
        """
        Let calls begin that wait, as far as there is room for them.
        """
        while self._waiting and self._current and self._current.has_room:
            stream = next(iter(self._waiting))
            del self._waiting[stream]
            self._current.start(stream)
        if self._waiting and not (self._current or self._attempt):
            seconds, connections = self._limits.connect_s, Connections(self._build)
            made = deferLater(self._clock, 0, connected, self._connect, connections, seconds, self._clock)
            self._attempt = made.addCallbacks(self._use, self._fail)
            self._attempt.addErrback(lambda failure: self._log.failure("no calls to {to}", failure, to=self.authority))

    def _build(self) -> Connection:
        return Connection(self.authority, self, self._clock, self._limits)

    def _use(self, connection: Connection) -> None:
        self._attempt = None
        if connection.takes_calls:
            self._current = connection
        self._go_on()

    def _fail(self, failure: Failure) -> None:
        self._attempt = None
        failure.trap(RpcError, CancelledError)
        if isinstance(failure.value, RpcError):
            self._end_waiting(RpcError(Status.UNAVAILABLE, f"{self.authority}: {failure.value.message}"))

    def _end_waiting(self, error: RpcError) -> None:
        waiting, self._waiting = self._waiting, {}
        for stream in waiting:
            stream.end(error)

    def _closed_error(self) -> RpcError:
        return RpcError(Status.CANCELLED, f"the channel to {self.authority} was closed")
