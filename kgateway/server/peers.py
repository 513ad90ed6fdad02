"""
The other gateways of a cluster, asked in Kafka's protocol as a client would.

Administrators' requests are forwarded this way now and then, so each has a connection of its own.
"""

from typing import Any, NoReturn

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost, DNSLookupError
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.cluster.view import Address, Node
from kgateway.interfaces import PEER, IPeers
from kgateway.messages.catalogue import apis
from kgateway.wire.codec import decode, decoder
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.frames import Framer
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message

_CONNECT_S = 3.0
_ANSWER_S = 12.0  # SeaweedMQ takes some seconds to make a topic


class Question(Protocol):
    def __init__(self, asked: bytes) -> None:
        self.answer: Deferred[bytes] = Deferred(lambda _: self._hang_up())
        self._asked = asked
        self._framer = Framer()

    def connectionMade(self) -> None:
        assert self.transport
        self.transport.write(self._asked)

    def dataReceived(self, data: bytes) -> None:
        frames = self._framer.feed(data)
        if frames and not self.answer.called:
            self.answer.callback(bytes(frames[0]))
        if frames or self._framer.failure:
            self._hang_up()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if not self.answer.called:
            self.answer.errback(self._framer.failure or reason)

    def _hang_up(self) -> None:
        if self.transport:
            self.transport.loseConnection()


class _QuestionFactory(Factory):
    noisy = False

    def __init__(self, asked: bytes) -> None:
        self._asked = asked

    def buildProtocol(self, addr: object) -> Question:
        return Question(self._asked)


@implementer(IPeers)
class Peers:
    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._responses = {api.request: api.response for api in apis().values()}

    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        return Deferred.fromCoroutine(self._ask(node, request, version))

    async def _ask(self, node: Node, request: Message, version: int) -> Message:
        address = next(iter(node.addresses.values()), None)
        if address is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node.id} advertises no address")
        question = await self._connected(node, address, b"".join(request_frame(request, version, 0, PEER)))
        try:
            frame = await question.answer.addTimeout(_ANSWER_S, self._reactor, _too_late)
            response = self._responses[type(request)]
            _, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
            return decode(response, version, frame[start:])
        except (TooLate, CancelledError, ConnectionDone, ConnectionLost, Malformed) as error:
            reason = f"node {node.id} at {address} may have executed the request, but did not respond: {error}"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason) from error

    async def _connected(self, node: Node, address: Address, asked: bytes) -> Question:
        try:
            connecting = self._endpoint(address).connect(_QuestionFactory(asked))
            question = await connecting.addTimeout(_CONNECT_S, self._reactor, _too_late)  # including the DNS lookup
        except (ConnectError, DNSLookupError, TooLate, ValueError) as error:
            reason = f"node {node.id} cannot be reached at {address}: {error}"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason) from error
        assert isinstance(question, Question)
        return question

    def _endpoint(self, address: Address) -> IStreamClientEndpoint:
        """
        Twisted accepts no host name with an underscore, and Docker has such names.
        """
        if "_" in address.host:
            return TCP4ClientEndpoint(self._reactor, address.host, address.port, _CONNECT_S)
        return HostnameEndpoint(self._reactor, address.host.encode(), address.port, _CONNECT_S)


def _too_late(_: object, seconds: float) -> NoReturn:
    raise TooLate(f"no response within {seconds:g} s")
