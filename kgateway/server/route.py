"""
The way of one API in one version: how its request is read, who handles it, how its answer is written.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from kgateway.context import Context
from kgateway.interfaces import IApiFilter, IApiHandler, Response
from kgateway.server.answers import error_finder
from kgateway.server.registry import api_name
from kgateway.server.scope import concerns
from kgateway.wire.codec import decoder, encoder
from kgateway.wire.headers import RequestHeader, request_header_version, response_header_version
from kgateway.wire.schema import Message
from kgateway.wire.types import Buffer

_head = struct.Struct(">ii").pack


class Route:
    """
    Made when the first request of its kind comes; the codec writes its functions then.
    """

    def __init__(self, handler: IApiHandler, filters: Sequence[IApiFilter], version: int) -> None:
        self.api = api_name(handler.request)
        self.version = version
        self.request = handler.request
        self.response = handler.response
        self.overlaps = handler.overlaps
        self.polls = handler.polls
        self.throttles = any(field.name == "throttle_time_ms" for field in handler.response.__fields__)
        self.calls = 0
        self.errors = 0
        self.seconds = 0.0
        self.read_header = decoder(RequestHeader, request_header_version(handler.request, version))
        self.read: Callable[[bytes, int], tuple[Message, int]] = decoder(handler.request, version)
        self._write: Callable[[Any], list[Buffer]] = encoder(handler.response, version)
        # A response header is the correlation id, and where it is flexible an empty section of tags.
        self._header_end = b"\0" * response_header_version(handler.response, version)
        self.find_errors = error_finder(handler.response)
        self.handle: Callable[[Any, Context], Response] = handler.handle
        if filters:
            self.handle = _filtered(handler, filters)

    def frame(self, response: Message, correlation_id: int) -> list[bytes]:
        """
        The response as it travels: size, header, body. Record batches that are bytes are passed on uncopied; Twisted's
        transports take nothing but bytes.
        """
        body = self._write(response)
        size = 4 + len(self._header_end)
        for part in body:
            size += part.nbytes if isinstance(part, memoryview) else len(part)
        rest = [part if type(part) is bytes else bytes(part) for part in body[1:]]
        return [b"".join((_head(size, correlation_id), self._header_end, body[0])), *rest]


def _filtered(handler: IApiHandler, filters: Sequence[IApiFilter]) -> Callable[[Any, Context], Response]:
    """
    The handler with those filters around it that the request concerns.
    """

    def handle(request: Message, context: Context) -> Response:
        fitting = concerns(filters, request, context)
        if not fitting:
            return handler.handle(request, context)
        context.held = True
        return _through(fitting, handler, request, context)

    return handle


async def _through(
    filters: Sequence[IApiFilter], handler: IApiHandler, request: Message, context: Context
) -> Message | None:
    if not filters:
        context.held = False
        answer = handler.handle(request, context)
        return answer if answer is None or isinstance(answer, Message) else await answer
    outermost, *inner = filters

    async def proceed(request: Message) -> Message | None:
        return await _through(inner, handler, request, context)

    return await outermost.filter(request, context, proceed)
