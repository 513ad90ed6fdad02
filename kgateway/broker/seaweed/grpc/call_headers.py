"""
Headers of a call: of the request, and of the response before its messages, after them, or both in one.
"""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from google.protobuf.message import Message

from kgateway.broker.seaweed.grpc.status import RpcError, Status, of_http

_CONTENT_TYPE = b"application/grpc"


class ResponseHeaders:
    __slots__ = ("_fields", "has_messages")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self.has_messages = False  # if it is not gRPC, a page for people follows

    def add(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._fields.update(headers)
        self.has_messages = self._http_status == 200 and self._content_type.startswith(_CONTENT_TYPE)

    def outcome(self) -> RpcError | None:
        if b"grpc-status" in self._fields:
            status = Status.of(self._fields[b"grpc-status"])
            return None if status is Status.OK else RpcError(status, self._message())
        if self._http_status != 200:
            return RpcError(of_http(self._http_status), f"the peer answered with HTTP status {self._http_status}")
        if not self.has_messages:
            content_type = self._content_type.decode("latin-1") or "no content type"
            return RpcError(Status.UNKNOWN, f"the peer answered with {content_type}, which is not gRPC")
        return RpcError(Status.UNKNOWN, "the response ended without a status")

    @property
    def _http_status(self) -> int:
        status = self._fields.get(b":status", b"")
        return int(status) if status.isdigit() else 0

    @property
    def _content_type(self) -> bytes:
        return self._fields.get(b"content-type", b"")

    def _message(self) -> str:
        return unquote_to_bytes(self._fields.get(b"grpc-message", b"")).decode(errors="replace")


Metadata = Sequence[tuple[str, str]]

USER_AGENT = "kgateway"
_TIMEOUT_MAX = 99_999_999  # gRPC allows eight digits


class RequestHeaders(NamedTuple):
    """
    The headers of one call. The deadline is in the seconds of the clock.
    """

    path: str
    metadata: Metadata
    deadline: float | None

    def headers(self, scheme: str, authority: str, now: float) -> list[tuple[str, str]]:
        timeout = [] if self.deadline is None else [("grpc-timeout", timeout_text(self.deadline - now))]
        return [
            (":method", "POST"),
            (":scheme", scheme),
            (":path", self.path),
            (":authority", authority),
            *timeout,
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", USER_AGENT),
            ("grpc-accept-encoding", "identity"),
            *self.metadata,
        ]


def timeout_text(seconds: float) -> str:
    """
    A timeout as gRPC writes it. Equal timeouts have equal texts, so that HTTP/2 sends them once.
    """
    milliseconds = max(1, ceil(seconds * 1000 - 0.5))
    return f"{milliseconds}m" if milliseconds <= _TIMEOUT_MAX else f"{min(milliseconds // 1000, _TIMEOUT_MAX)}S"


RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Method(NamedTuple, Generic[RequestT, ResponseT]):
    """
    A method of a service: its path, as /package.Service/Method, and the messages that it takes and answers.
    """

    path: str
    request: type[RequestT]
    response: type[ResponseT]
