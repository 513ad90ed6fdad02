"""
How a connection comes to be, within a time.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IAddress, IProtocolFactory, IProtocolNegotiationFactory, IReactorTime
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.seaweed.grpc.connection import Connection
from kgateway.broker.seaweed.grpc.status import RpcError, Status

Connect = Callable[[IProtocolFactory], Deferred[Any]]  # such as the `connect` of an endpoint


@implementer(IProtocolNegotiationFactory)
class Connections(Factory):
    """
    Makes connections; with TLS both sides agree on HTTP/2 first.
    """

    noisy = False

    def __init__(self, build: Callable[[], Connection]) -> None:
        self._build = build

    def buildProtocol(self, addr: IAddress | None) -> Connection:
        return self._build()

    def acceptableProtocols(self) -> list[bytes]:
        return [b"h2"]


def connected(connect: Connect, connections: Connections, seconds: float, clock: IReactorTime) -> Deferred[Connection]:
    """
    A connection whose peer has said that it speaks HTTP/2; an RpcError where there is none in time.
    """

    def late(_: object, seconds: float) -> Failure:
        return Failure(RpcError(Status.UNAVAILABLE, f"no connection within {seconds:g} s"))

    return Deferred.fromCoroutine(_settled(connect, connections)).addTimeout(seconds, clock, late)


async def _settled(connect: Connect, connections: Connections) -> Connection:
    try:
        connection: Connection = await connect(connections)
    except (CancelledError, RpcError):
        raise
    except Exception as error:  # endpoints fail with all kinds
        raise RpcError(Status.UNAVAILABLE, f"no connection: {error}") from error
    try:
        await connection.settled()
    except CancelledError:
        connection.abort("the peer was too slow to say that it speaks HTTP/2")
        raise
    return connection
