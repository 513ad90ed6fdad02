"""
A connection with both its ends; the test plays the reactor.
"""

import socket

from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection
from twisted.internet.testing import MemoryReactor


class Transport(Connection):
    """
    A server's transport with what a protocol uses of it.
    """

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 9092)

    def setTcpNoDelay(self, enabled: bool) -> None: ...
    def setTcpKeepAlive(self, enabled: bool) -> None: ...


class SocketPair:
    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.reactor = MemoryReactor()
        self.transport = Transport(ours, Protocol(), self.reactor)
        self.transport.connected = 1

    def received(self) -> bytes:
        """
        The bytes that arrive, calling the writer where it is registered.
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
