"""
A dispatcher with the handlers and filters of a test, driven as by a connection: frames in, frames out.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from kgateway.api import Around, Handler
from kgateway.observe.reasons import Reasons
from kgateway.server.dispatch import Dispatcher
from kgateway.server.registry import Plugin, Registry
from kgateway.server.request_queue import PendingAnswer
from kgateway.wire.codec import decode, decoder
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid
from tests.serving import Serving

M = TypeVar("M", bound=Message)
CLIENT_ID = "checkout"


class CountRequest(Message, key=30_000, versions="0-3", flexible="2+"):
    """
    An API for tests; from v3 on topics have ids.
    """

    class Topic(Struct):
        name: str = v("0-2")
        topic_id: Uuid = v("3+")

    topics: list[Topic]


class CountResponse(Message, key=30_000, versions="0-3", flexible="2+"):
    """
    One code for each topic; before v1 there is no throttle time.
    """

    class Topic(Struct):
        name: str = v("0-2")
        topic_id: Uuid = v("3+")
        error_code: i16 = v()
        count: i32 = v()

    throttle_time_ms: i32 = v("1+")
    topics: list[Topic] = v()


class PingRequest(Message, key=30_001, versions="0"):
    """
    Another API for tests, without fields.
    """


class PingResponse(Message, key=30_001, versions="0"):
    """
    A response without an error code.
    """

    pongs: i32 = v()


def count(*names: str) -> CountRequest:
    return CountRequest(topics=[CountRequest.Topic(name=name) for name in names])


def plugins(*values: Handler | Around, module: str = "tests") -> list[Plugin]:
    """
    Plugins as if discovered in a module.
    """
    return [Plugin(value, module) for value in values]


class Dispatching(Serving):
    """
    A gateway with one connection.
    """

    def __init__(self, *values: Handler | Around, also: Iterable[Plugin] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.registry = Registry([*plugins(*values), *also])
        self.parts.advertised = self.registry.advertised
        self.reasons = Reasons()
        self.dispatcher = Dispatcher(self.parts, self.registry, self.reasons)
        self.parts.ask = self.dispatcher.ask

    def send(self, request: Message, version: int, correlation_id: int = 7) -> bytes | PendingAnswer:
        """
        Dispatch a request; the result is the bytes to send, or what they will come from.
        """
        frame = b"".join(request_frame(request, version, correlation_id, CLIENT_ID))
        answer = self.dispatcher.serve(frame[4:], self.session)
        return answer if isinstance(answer, PendingAnswer) else b"".join(answer)

    def said(self, response: type[M], version: int, request: Message | None = None) -> M:
        """
        The response to a request that is answered at once.
        """
        answer = self.send(request or count("orders"), version)
        assert isinstance(answer, bytes)
        return read(response, version, answer)

    def codes(self, version: int = 0, request: Message | None = None) -> list[int]:
        """
        The error codes in the response to Count.
        """
        return [topic.error_code for topic in self.said(CountResponse, version, request).topics]

    def remembered(self) -> list[tuple[str, str, int | None, str, str, str]]:
        """
        The remembered reasons: client, API, version, outcome, subject and message.
        """
        return [(r.client_id, r.api, r.version, r.outcome, r.subject, r.message) for r in self.reasons.latest(100)]


def read(response: type[M], version: int, frame: bytes, correlation_id: int = 7) -> M:
    """
    The response in a frame, which must have this correlation id.
    """
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 4)
    assert header.correlation_id == correlation_id
    return decode(response, version, frame[start:])


def ready(answer: bytes | PendingAnswer) -> bytes:
    """
    The bytes of a completed PendingAnswer.
    """
    assert isinstance(answer, PendingAnswer)
    assert answer.ready
    assert answer.hang_up is None
    return b"".join(answer.buffers)
