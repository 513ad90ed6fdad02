"""
A connection as operators see it. What is told is put together when somebody asks.
"""

from typing import TYPE_CHECKING, Any

from kgateway.server.addresses import address_of
from kgateway.server.unsent import Unsent
from kgateway.server.writer import Writer
from kgateway.wire.codec import decoder
from kgateway.wire.frames import Framer
from kgateway.wire.headers import RequestHeader
from kgateway.wire.malformed import Malformed

if TYPE_CHECKING:
    from kgateway.server.connection import Connection

HEAD_BYTES = 10 + 255  # of a request: what begins its header, and a client id as long as they usually are at most
_CLASSIC_HEADER = 1  # the client id stands in it as in the flexible one

_read_header = decoder(RequestHeader, _CLASSIC_HEADER)


def seen(connection: "Connection", now: float, now_ms: int) -> dict[str, Any]:
    """
    One connection, at this time of either clock.
    """
    session = connection.session
    return {
        "client_id": client_id(connection.first_head),
        "software": session.software,
        "software_version": session.software_version,
        "address": str(address_of(connection.transport.getPeer())),
        "listener": session.listener,
        "principal": session.principal,
        "since_ms": now_ms - round((now - connection.opened) * 1000),
        "idle_s": round(now - connection.last_seen, 3),
        "requests": connection.requests,
        "bytes_in": connection.bytes_in,
        "bytes_out": connection.bytes_out,
        "waits_for": connection.waits_for,
    }


def waiting(writer: Writer, answers: Unsent, framer: Framer, is_paused: bool) -> str:
    """
    What happens next on a connection, in words.
    """
    if writer.is_full:
        return "the client to read its answers"
    if answers:
        return f"the answer to {answers[0].api or 'a request'}"
    if framer.declared:
        return f"{'memory for' if is_paused else 'the rest of'} a request of {framer.declared} bytes"
    return "memory" if is_paused else "a request"


def client_id(head: bytes) -> str:
    """
    What a client calls itself in its first request.
    """
    if not head:
        return ""
    try:
        return _read_header(head, 0)[0].client_id or ""
    except Malformed:
        return ""
