"""
HTTP requests over persistent connections.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore, succeed
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IConsumer, IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool, ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.cluster.view import Address

_AT_ONCE = 8  # requests to all servers of a role
_KEPT_S = 20  # SeaweedFS closes connections that were idle for 30 s
_CONNECT_S = 10.0
_NOT_ALLOWED = 401


class HttpResponse(NamedTuple):
    status: int
    body: bytes


class HttpClient:
    def __init__(self, reactor: Any, role: Role, security: Security) -> None:
        self._reactor = reactor
        self._role = role
        self._security = security
        self._pool = HTTPConnectionPool(reactor)
        self._pool.maxPersistentPerHost = _AT_ONCE
        self._pool.cachedConnectionTimeout = _KEPT_S
        self._agent = Agent.usingEndpointFactory(reactor, _Endpoints(reactor, role, security), self._pool)
        self._places = DeferredSemaphore(_AT_ONCE)

    def ask(
        self,
        verb: str,
        address: Address,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        answer_bytes_max: int = 1 << 16,
        timeout_s: float,
    ) -> Deferred[HttpResponse]:
        """
        Returns the response, whatever its status. Raises RpcError if it does not arrive in time, or is longer than
        allowed, and FilerRefused if the server does not accept our signature (401).
        """
        name = f"{verb} {address}{path}"

        async def asked() -> HttpResponse:
            all_headers = {**(headers or {}), **self._security.headers(self._role, verb, path)}
            sent = Headers({key: [value] for key, value in all_headers.items()})
            uri = f"http://{address}{path}".encode()
            response = await self._agent.request(verb.encode(), uri, sent, _Body(body) if body else None)
            body_received = _BodyCollector(answer_bytes_max)
            response.deliverBody(body_received)
            answer = HttpResponse(response.code, await body_received.whole)
            if answer.status == _NOT_ALLOWED:
                raise FilerRefused(path, f"HTTP 401: {self._security.why_refused(self._role, verb)}")
            return answer

        def reworded(failure: Failure) -> Failure:
            if failure.check(CancelledError, RpcError, FilerRefused):
                return failure
            return Failure(RpcError(Status.UNAVAILABLE, f"{name}: {_words(failure)}"))

        def late(_: object, seconds: float) -> Failure:
            return Failure(RpcError(Status.DEADLINE_EXCEEDED, f"{name}: no response within {seconds:g} s"))

        waiting = self._places.run(lambda: Deferred.fromCoroutine(asked()))
        return waiting.addErrback(reworded).addTimeout(timeout_s, self._reactor, late)

    def close(self) -> Deferred[None]:
        closed: Deferred[None] = self._pool.closeCachedConnections()
        return closed


def _words(failure: Failure) -> str:
    """
    The reason of a failure that may have several.
    """
    reasons: list[Failure] = getattr(failure.value, "reasons", [])
    return "; ".join(map(_words, reasons)) if reasons else failure.getErrorMessage()


@implementer(IAgentEndpointFactory)
class _Endpoints:
    def __init__(self, reactor: Any, role: Role, security: Security) -> None:
        self._reactor = reactor
        self._role = role
        self._security = security

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        plain = HostnameEndpoint(self._reactor, uri.host, uri.port, timeout=_CONNECT_S)
        return self._security.http(plain, self._role, uri.host.decode())


@implementer(IBodyProducer)
class _Body:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length = len(data)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self._data)
        return succeed(None)

    def pauseProducing(self) -> None:
        pass

    def resumeProducing(self) -> None:
        pass

    def stopProducing(self) -> None:
        pass


class _BodyCollector(Protocol):
    """
    Collects the body of a response. If nobody waits for it any more, or it is too long, the connection is closed.
    """

    def __init__(self, bytes_max: int) -> None:
        self.whole: Deferred[bytes] = Deferred(lambda _: self._leave())
        self._bytes_max = bytes_max
        self._size = 0
        self._pieces: list[bytes] = []

    def dataReceived(self, data: bytes) -> None:
        self._size += len(data)
        self._pieces.append(data)
        if self._size > self._bytes_max and not self.whole.called:
            self._pieces.clear()
            self.whole.errback(RpcError(Status.OUT_OF_RANGE, f"the response is longer than {self._bytes_max} bytes"))
            self._leave()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.whole.called:
            return
        if reason.check(ResponseDone):
            self.whole.callback(b"".join(self._pieces))
        else:
            self.whole.errback(reason)

    def _leave(self) -> None:
        if self.transport:
            self.transport.loseConnection()
