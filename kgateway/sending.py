"""
What goes to the socket at once.

Twisted asks the system whether it may write before it writes, and takes that back when nothing is left to write: two
calls and a round of the reactor. Many answers share them; one that leaves alone pays for all of it. So such a one is
tried first, and what the socket does not take goes the usual way.
"""

from collections.abc import Sequence
from typing import TypeGuard

from twisted.internet.interfaces import ITransport
from twisted.internet.tcp import Connection as TCPConnection

from kgateway.wire.types import Buffer

UNCOPIED_BYTES = 128 << 10  # so much is not put together before it is sent
_BUFFERS_MAX = 1024  # that systems take in one call


def write_now(transport: ITransport, data: bytes) -> None:
    """
    Write, without a wait where that is possible.
    """
    if takes_at_once(transport):
        sent = transport.writeSomeData(data)
        if isinstance(sent, int):
            data = data[sent:]  # where it failed, the transport finds out for itself, and ends as it is used to
    if data:
        transport.write(data)


def send_now(transport: ITransport, buffers: Sequence[Buffer]) -> int:
    """
    How many bytes of these the socket takes at once, as they are; it may take none.
    """
    if not takes_at_once(transport):
        return 0
    try:
        return int(transport.socket.sendmsg(buffers[:_BUFFERS_MAX]))
    except OSError:
        return 0  # the transport finds out for itself, and ends as it is used to


def takes_at_once(transport: ITransport) -> TypeGuard[TCPConnection]:
    """
    Whether the socket takes the bytes as they are, and none are before them.
    """
    if not isinstance(transport, TCPConnection) or transport.TLS or transport.disconnecting:
        return False
    return not (transport.dataBuffer or getattr(transport, "_tempDataLen", True))  # no public name says as much
