"""
Calls to one address, over connections that are made when a call needs them.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from google.protobuf.message import DecodeError
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IAddress, IProtocolFactory, IProtocolNegotiationFactory, IReactorTime
from twisted.internet.protocol import Factory
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.seaweed.grpc.call_headers import Metadata, Method, RequestHeaders, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.connection import Connection
from kgateway.broker.seaweed.grpc.status import CallNotProcessed, RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Ended, Limits, Received, Stream
from kgateway.log_messages import NO_CALLS

Connect = Callable[[IProtocolFactory], Deferred[Any]]  # such as the `connect` of an endpoint


@implementer(IProtocolNegotiationFactory)
class ConnectionFactory(Factory):
    """
    Creates connections. With TLS, both sides agree on HTTP/2 first.
    """

    noisy = False

    def __init__(self, build: Callable[[], Connection]) -> None:
        self._build = build

    def buildProtocol(self, addr: IAddress | None) -> Connection:
        return self._build()

    def acceptableProtocols(self) -> list[bytes]:
        return [b"h2"]


def connected(
    connect: Connect, connections: ConnectionFactory, seconds: float, clock: IReactorTime
) -> Deferred[Connection]:
    """
    Connect, and wait until the peer has said that it speaks HTTP/2; raises an RpcError if it does not in time.
    """

    def late(_: object, seconds: float) -> Failure:
        return Failure(RpcError(Status.UNAVAILABLE, f"no connection within {seconds:g} s"))

    return Deferred.fromCoroutine(_ready_connection(connect, connections)).addTimeout(seconds, clock, late)


async def _ready_connection(connect: Connect, connections: ConnectionFactory) -> Connection:
    try:
        connection: Connection = await connect(connections)
    except (CancelledError, RpcError):
        raise
    except Exception as error:  # endpoints fail with all kinds
        raise RpcError(Status.UNAVAILABLE, f"no connection: {error}") from error
    try:
        await connection.ready()
    except CancelledError:
        connection.abort("the peer was too slow to confirm that it speaks HTTP/2")
        raise
    return connection


class UnaryCall(Generic[ResponseT]):
    """
    A call with one message either way. It is cancelled if nobody waits for the answer any more.
    """

    def __init__(self, response: type[ResponseT]) -> None:
        self.answered: Deferred[ResponseT] = Deferred(self._cancel)
        self.stream: Stream
        self._response = response
        self._messages: list[bytes] = []
        self._is_cancelled = False

    def received(self, message: bytes) -> None:
        self._messages.append(message)

    def ended(self, error: RpcError | None) -> None:
        del self.stream  # the stream refers to this call
        if self._is_cancelled:
            return
        try:
            response = self._message(error)
        except RpcError as failed:
            self.answered.errback(failed)
        else:
            self.answered.callback(response)

    def _message(self, error: RpcError | None) -> ResponseT:
        if error:
            raise error
        if len(self._messages) != 1:
            raise RpcError(Status.INTERNAL, f"the peer answered with {len(self._messages)} messages instead of one")
        try:
            return self._response.FromString(self._messages[0])
        except DecodeError as failed:
            name = self._response.DESCRIPTOR.full_name
            raise RpcError(
                Status.INTERNAL, f"the peer answered with something other than a {name}: {failed}"
            ) from failed

    def _cancel(self, _: Deferred[ResponseT]) -> None:
        self._is_cancelled = True
        self.stream.cancel()


class PeerCheck(NamedTuple):
    """
    A call that shows whether a new connection leads to the right peer: `accept` raises an RpcError if it does not.
    """

    method: Method[Any, Any]
    request: Any
    accept: Callable[[Any], None]


_NOT_TAKEN_S = 0.05  # until a call that was not processed is made again


class Channel:
    """
    Calls to one address. A connection is made when a call needs one, and another when that is lost. A call is tried
    again only if it has a single message and the peer has not processed it, until its time is over.

    `metadata` is sent with each call, before the metadata of the call. With a `check`, a connection takes calls only
    after its peer has passed it.
    """

    _log = Logger()

    def __init__(
        self,
        connect: Connect,
        authority: str,
        clock: IReactorTime,
        metadata: Metadata = (),
        limits: Limits = Limits(),  # noqa: B008 (it is frozen)
        check: PeerCheck | None = None,
    ) -> None:
        self.authority = authority
        self._connect = connect
        self._clock = clock
        self._metadata = tuple(metadata)
        self._limits = limits
        self._check = check
        self._waiting: dict[Stream, None] = {}  # for a connection, or for room on it, in order
        self._attempt: Deferred[None] | None = None
        self._current: Connection | None = None
        self._connections: set[Connection] = set()  # that are open
        self._closed: list[Deferred[None]] = []
        self._is_closed = False

    def call(
        self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float, metadata: Metadata = ()
    ) -> Deferred[ResponseT]:
        """
        The answer to a message; raises an RpcError if there is none in this many seconds.
        """
        deadline = self._clock.seconds() + timeout

        def attempt() -> Deferred[ResponseT]:
            left = deadline - self._clock.seconds()
            return self._call_once(method, request, left, metadata).addErrback(again)

        def again(failure: Failure) -> Deferred[ResponseT]:
            failure.trap(CallNotProcessed)
            if deadline - self._clock.seconds() <= _NOT_TAKEN_S:
                raise RpcError(Status.DEADLINE_EXCEEDED, f"{method.path} was not accepted within {timeout:g} s")
            return deferLater(self._clock, _NOT_TAKEN_S).addCallback(lambda _: attempt())

        return attempt()

    def _call_once(
        self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float, metadata: Metadata
    ) -> Deferred[ResponseT]:
        unary = UnaryCall(method.response)
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
        Open a stream of messages. Its callbacks are called after this has returned.
        """
        deadline = None if timeout is None else self._clock.seconds() + timeout
        request = RequestHeaders(method.path, (*self._metadata, *metadata), deadline)
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
        pass

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
        Start waiting calls, as far as there is room for them.
        """
        while self._waiting and self._current and self._current.has_room:
            stream = next(iter(self._waiting))
            del self._waiting[stream]
            self._current.start(stream)
        if self._waiting and not (self._current or self._attempt):
            made = deferLater(self._clock, 0, lambda: Deferred.fromCoroutine(self._new_connection()))
            self._attempt = made.addCallbacks(self._use, self._fail)
            self._attempt.addErrback(lambda failure: self._log.failure(NO_CALLS, failure, to=self.authority))

    def _build(self) -> Connection:
        return Connection(self.authority, self, self._clock, self._limits)

    async def _new_connection(self) -> Connection:
        seconds, connections = self._limits.connect_s, ConnectionFactory(self._build)
        connection = await connected(self._connect, connections, seconds, self._clock)
        if self._check and connection.takes_calls:
            try:
                self._check.accept(await self._call_on(connection, self._check))
            except (RpcError, CancelledError):
                connection.abort("the peer did not pass the check")
                raise
        return connection

    def _call_on(self, connection: Connection, check: PeerCheck) -> Deferred[Any]:
        unary: UnaryCall[Any] = UnaryCall(check.method.response)
        deadline = self._clock.seconds() + self._limits.connect_s
        request = RequestHeaders(check.method.path, self._metadata, deadline)
        unary.stream = stream = Stream(request, unary.received, unary.ended, self, self._limits)
        stream.limit(self._clock, self._limits.connect_s)
        connection.start(stream)
        stream.send([check.request.SerializeToString()])
        stream.finish()
        return unary.answered

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
