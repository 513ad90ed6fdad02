"""
An answer that goes to the socket at once.

Twisted asks the system whether it may write before it writes, and takes that back when nothing is left to write: two
calls and a round of the reactor. Many answers share them; one that leaves alone pays for all of it. So such a one is
tried first, and what the socket does not take goes the usual way.
"""

from typing import TypeGuard

from twisted.internet.interfaces import ITransport
from twisted.internet.tcp import Connection as TCPConnection


def write_now(transport: ITransport, data: bytes) -> None:
    """
    Write, without a wait where that is possible.
    """
    if _is_plain_and_idle(transport):
        sent = transport.writeSomeData(data)
        if isinstance(sent, int):
            data = data[sent:]  # where it failed, the transport finds out for itself, and ends as it is used to
    if data:
        transport.write(data)


def _is_plain_and_idle(transport: ITransport) -> TypeGuard[TCPConnection]:
    """
    Whether the socket takes the bytes as they are, and none are before them.
    """
    if not isinstance(transport, TCPConnection) or transport.TLS or transport.disconnecting:
        return False
    return not (transport.dataBuffer or getattr(transport, "_tempDataLen", True))  # no public name says as much
