"""
The headers before the body of a request and of a response.

The version of a header follows from that of the body: flexible bodies have flexible headers. Two exceptions keep
clients and servers of different ages talking, both of ApiVersions, the first request of a client:

 - its response header is always v0, because the client cannot know yet what the server speaks
 - a version that the server does not know is answered with UNSUPPORTED_VERSION in v0, which every client reads
"""

import struct

from kgateway.wire.codec import encode, encoder
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.schema import Message, v
from kgateway.wire.types import Buffer, i16, i32

_peek = struct.Struct(">hhi").unpack_from
_size = struct.Struct(">i").pack
_API_VERSIONS = 18


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """
    The header of every request.

     - v0: only for ControlledShutdown v0
     - v1: client_id
     - v2: flexible (KIP-482)
    """

    request_api_key: i16
    request_api_version: i16
    correlation_id: i32
    client_id: str | None = v("1+", classic=True)  # never compact: ApiVersions of any version must parse


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """
    The header of every response.

     - v1: flexible (KIP-482)
    """

    correlation_id: i32


def peek(frame: bytes) -> tuple[int, int, int]:
    """
    API key, version and correlation id, with which every request header begins.
    """
    try:
        key, version, correlation_id = _peek(frame)
    except struct.error:
        raise Malformed(MessageField("RequestHeader", 0, "correlation_id"), len(frame), "the bytes end here") from None
    return key, version, correlation_id


def request_header_version(message: type[Message], version: int) -> int:
    """
    The version of the header of this request, also if the body's version is newer than its table.
    """
    return 2 if version in message.__spec__.flexible else 1


def response_header_version(message: type[Message], version: int) -> int:
    spec = message.__spec__
    return 1 if version in spec.flexible and spec.key != _API_VERSIONS else 0


def request_frame(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    header = RequestHeader(
        request_api_key=message.__spec__.key or 0,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return _framed(
        encode(header, request_header_version(type(message), version)), encoder(type(message), version)(message)
    )


def response_frame(message: Message, version: int, correlation_id: int) -> list[Buffer]:
    """
    A response on the wire; record batches are among the buffers uncopied.
    """
    header = ResponseHeader(correlation_id=correlation_id)
    return _framed(
        encode(header, response_header_version(type(message), version)), encoder(type(message), version)(message)
    )


def _framed(head: bytes, body: list[Buffer]) -> list[Buffer]:
    size = sum([part.nbytes if isinstance(part, memoryview) else len(part) for part in body])
    return [_size(len(head) + size) + head, *body]
