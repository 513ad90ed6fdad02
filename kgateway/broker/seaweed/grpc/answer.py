"""
What a peer says of a call beside its messages: headers before them, trailers behind, or both in one where there are no
messages.
"""

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from kgateway.broker.seaweed.grpc.status import RpcError, Status, of_http

_CONTENT_TYPE = b"application/grpc"


class Answer:
    """
    Of one call.
    """

    __slots__ = ("_fields", "has_messages")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self.has_messages = False  # where it is not gRPC, what follows is a page for people

    def add(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """
        Take headers, or trailers.
        """
        self._fields.update(headers)
        self.has_messages = self._http_status == 200 and self._content_type.startswith(_CONTENT_TYPE)

    def outcome(self) -> RpcError | None:
        """
        How the call has ended, now that no more comes.
        """
        if b"grpc-status" in self._fields:
            status = Status.of(self._fields[b"grpc-status"])
            return None if status is Status.OK else RpcError(status, self._message())
        if self._http_status != 200:
            return RpcError(of_http(self._http_status), f"the peer answered with HTTP status {self._http_status}")
        if not self.has_messages:
            content_type = self._content_type.decode("latin-1") or "nothing that has a type"
            return RpcError(Status.UNKNOWN, f"the peer answered with {content_type}, which is not gRPC")
        return RpcError(Status.UNKNOWN, "the answer ended without a status")

    @property
    def _http_status(self) -> int:
        status = self._fields.get(b":status", b"")
        return int(status) if status.isdigit() else 0

    @property
    def _content_type(self) -> bytes:
        return self._fields.get(b"content-type", b"")

    def _message(self) -> str:
        return unquote_to_bytes(self._fields.get(b"grpc-message", b"")).decode(errors="replace")
