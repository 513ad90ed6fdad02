"""
A connection with both its ends, and the reactor's part played by the test.
"""

import socket

from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection
from twisted.internet.testing import MemoryReactor


class Transport(Connection):
    """
    As that of a server, as far as a protocol asks.
    """

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 9092)

    def setTcpNoDelay(self, enabled: bool) -> None: ...
    def setTcpKeepAlive(self, enabled: bool) -> None: ...


class Ends:
    """
    Both ends of a connection.
    """

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.reactor = MemoryReactor()
        self.transport = Transport(ours, Protocol(), self.reactor)
        self.transport.connected = 1

    def received(self) -> bytes:
        """
        What arrives, with the help of the reactor where it was asked for.
        """
        pieces = list[bytes]()
        self.theirs.setblocking(False)
        while True:
            if self.transport in self.reactor.getWriters():
                self.transport.doWrite()
            try:
                pieces.append(self.theirs.recv(1 << 20))
            except BlockingIOError:
                return b"".join(pieces)

    def close(self) -> None:
        self.transport.socket.close()
        self.theirs.close()
