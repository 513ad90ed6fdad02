"""
A dispatcher with the handlers and filters of a test, asked as a connection asks it: frames in, frames out.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from kgateway.api import Around, Handler
from kgateway.observe.reasons import Reasons
from kgateway.server.dispatch import Dispatcher
from kgateway.server.pending import Pending
from kgateway.server.registry import Plugin, Registry
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
    An API of tests; in v3 topics have ids.
    """

    class Topic(Struct):
        name: str = v("0-2")
        topic_id: Uuid = v("3+")

    topics: list[Topic]


class CountResponse(Message, key=30_000, versions="0-3", flexible="2+"):
    """
    A code for each topic; without a place for a throttle time before v1.
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
    Another API of tests, about nothing.
    """


class PingResponse(Message, key=30_001, versions="0"):
    """
    Without a place for an error.
    """

    pongs: i32 = v()


def count(*names: str) -> CountRequest:
    """
    A request about topics.
    """
    return CountRequest(topics=[CountRequest.Topic(name=name) for name in names])


def plugins(*values: Handler | Around, module: str = "tests") -> list[Plugin]:
    """
    As if they were found in a module.
    """
    return [Plugin(value, module) for value in values]


class Dispatching(Serving):
    """
    One gateway, and one connection to it.
    """

    def __init__(self, *values: Handler | Around, also: Iterable[Plugin] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.registry = Registry([*plugins(*values), *also])
        self.parts.advertised = self.registry.advertised
        self.reasons = Reasons()
        self.dispatcher = Dispatcher(self.parts, self.registry, self.reasons)

    def send(self, request: Message, version: int, correlation_id: int = 7) -> bytes | Pending:
        """
        What comes of a request: the bytes to send, or what they will come out of.
        """
        frame = b"".join(request_frame(request, version, correlation_id, CLIENT_ID))
        answer = self.dispatcher.serve(frame[4:], self.session)
        return answer if isinstance(answer, Pending) else b"".join(answer)

    def said(self, response: type[M], version: int, request: Message | None = None) -> M:
        """
        The answer to a request, which is there at once.
        """
        answer = self.send(request or count("orders"), version)
        assert isinstance(answer, bytes)
        return read(response, version, answer)

    def codes(self, version: int = 0, request: Message | None = None) -> list[int]:
        """
        The error codes in the answer to a count.
        """
        return [topic.error_code for topic in self.said(CountResponse, version, request).topics]

    def remembered(self) -> list[tuple[str, str, int | None, str, str, str]]:
        """
        The reasons: client, API, version, outcome, subject and message.
        """
        return [(r.client_id, r.api, r.version, r.outcome, r.subject, r.message) for r in self.reasons.latest(100)]


def read(response: type[M], version: int, frame: bytes, correlation_id: int = 7) -> M:
    """
    The response in a frame, which is the answer to the request of that correlation id.
    """
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 4)
    assert header.correlation_id == correlation_id
    return decode(response, version, frame[start:])


def ready(answer: bytes | Pending) -> bytes:
    """
    The bytes that a Pending has become.
    """
    assert isinstance(answer, Pending)
    assert answer.ready
    assert answer.hang_up is None
    return b"".join(answer.buffers)
