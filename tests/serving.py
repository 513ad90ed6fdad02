"""
A gateway without sockets or time of its own, for tests of handlers: the real broker in memory, with clocks that tests
set.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from zope.interface import implementer

from kgateway.api import Handler
from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.broker_config import topic_defaults
from kgateway.cluster.view import Address
from kgateway.config.settings import Settings
from kgateway.context import Context, GatewayParts, Session
from kgateway.handlers.create_topics import create_topics
from kgateway.interfaces import IAuthorizer
from kgateway.security.authorizer import AllowAll
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Message

START_MS = 1_800_000_000_000


@implementer(IAuthorizer)
class Denying:
    """
    Denies what the rule says, and records what it was asked.
    """

    def __init__(self, rule: Callable[[Operation, Resource, str], bool] = lambda *_: True) -> None:
        self._denies = rule
        self.asked: list[tuple[Operation, Resource, str]] = []

    def allowed(self, principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        self.asked.append((operation, resource, name))
        return not self._denies(operation, resource, name)


class Serving:
    """
    Sends requests to handlers as a client with one connection does.
    """

    def __init__(self, authorizer: IAuthorizer | None = None, **settings: Any) -> None:
        self.clock = Clock()
        chosen = Settings(**settings)
        self.broker = MemoryBroker(node_id=1, now_ms=self.now_ms, topic_defaults=topic_defaults(chosen))
        self.parts = GatewayParts(
            broker=self.broker,
            settings=chosen,
            authorizer=authorizer or AllowAll(),
            clock=self.clock,
            now_ms=self.now_ms,
            ask=self._create_topics,
        )
        self.session = Session(listener="plaintext", host="127.0.0.1", local=Address("127.0.0.1", 9092))
        self.context: Context  # of the last request
        self.request: Any  # the last response, as its handler returned it

    def now_ms(self) -> int:
        return START_MS + round(self.clock.seconds() * 1000)

    def ask(self, handler: Handler, request: Message, version: int) -> Deferred[Any]:
        """
        The response, after request and response were encoded and decoded in this version.
        """
        self.context = Context(self.parts, self.session, version, "test-client")
        self.request = decode(type(request), version, encode(request, version))
        result = handler.handle(self.request, self.context)
        if result is None or isinstance(result, Message):
            answer: Deferred[Any] = succeed(result)
        else:
            answer = Deferred.fromCoroutine(_awaited(result))
        return answer.addCallback(lambda response: response and _over_the_wire(response, version))

    async def _create_topics(self, request: Message, context: Context) -> Message:
        """
        Serve what a handler asks for; the only such request is CreateTopics.
        """
        inner = Context(self.parts, context.session, 7, context.client_id)
        return await cast(Awaitable[Message], create_topics.handle(request, inner))


async def _awaited(answer: Awaitable[Message | None]) -> Message | None:
    return await answer


def _over_the_wire(response: Message, version: int) -> Message:
    return decode(type(response), version, encode(response, version))
