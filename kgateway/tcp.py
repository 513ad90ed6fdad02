"""
Writes to a TCP socket immediately, if that is possible.

Twisted waits until the reactor says that the socket is writable, and removes the socket from the reactor when nothing
is left to write: two system calls and a round of the reactor, in which other work comes first. So answers are sent
directly, and what the socket does not take is written the usual way.
"""

from collections.abc import Sequence
from typing import TypeGuard

from twisted.internet.interfaces import ITransport
from twisted.internet.tcp import Connection as TCPConnection

from kgateway.wire.types import Buffer

UNCOPIED_BYTES = 128 << 10  # from here on buffers are not joined before they are sent
_BUFFERS_MAX = 1024  # for one sendmsg, by IOV_MAX


def write_now(transport: ITransport, data: bytes) -> None:
    if takes_at_once(transport):
        sent = transport.writeSomeData(data)
        if isinstance(sent, int):
            data = data[sent:]  # after an error the transport finds out for itself, and closes as usual
    if data:
        transport.write(data)


def send_now(transport: ITransport, buffers: Sequence[Buffer]) -> int:
    """
    Send from these buffers, uncopied. Returns how many bytes the socket took, maybe none.
    """
    if not takes_at_once(transport):
        return 0
    try:
        return int(transport.socket.sendmsg(buffers[:_BUFFERS_MAX]))
    except OSError:
        return 0  # the transport finds out for itself, and closes as usual


def takes_at_once(transport: ITransport) -> TypeGuard[TCPConnection]:
    """
    Whether the socket takes the bytes as they are, and no earlier bytes wait.
    """
    if not isinstance(transport, TCPConnection) or transport.TLS or transport.disconnecting:
        return False
    return not (transport.dataBuffer or getattr(transport, "_tempDataLen", True))  # no public name says so
