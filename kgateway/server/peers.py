"""
The other gateways of a cluster, asked in Kafka's own words, as a client would.

What is asked so is what administrators do, now and then: each question has a connection of its own, in a thread.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kgateway.client import address as client
from kgateway.client.connection import Connection, Unanswered
from kgateway.cluster.view import Node
from kgateway.interfaces import IPeers
from kgateway.messages.catalogue import apis
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

_PATIENCE_S = 15.0


@implementer(IPeers)
class Peers:
    """
    Those that say where they are reached.
    """

    def __init__(self, in_thread: Callable[[Callable[[], Any]], Deferred[Any]]) -> None:
        self._in_thread = in_thread
        self._responses = {api.request: api.response for api in apis().values()}

    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        return self._in_thread(partial(self._ask, node, request, version))

    def _ask(self, node: Node, request: Message, version: int) -> Message:
        for address in node.addresses.values():
            try:
                connection = Connection(client.Address(address.host, address.port), _PATIENCE_S)
            except Unanswered as error:
                reason = f"node {node.id} cannot be asked: {error}"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason) from error
            try:
                return connection.ask(request, self._responses[type(request)], version)
            except Unanswered as error:
                reason = f"node {node.id} was asked, and may have done it: {error}"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason) from error
            finally:
                connection.close()
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node.id} does not say where it is reached")
