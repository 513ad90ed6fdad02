"""
The way of answers from where they are made to the socket of one client.
"""

from twisted.internet.interfaces import IConsumer, IPushProducer, ITCPTransport
from zope.interface import Attribute

from kgateway.sending import UNCOPIED_BYTES, send_now, takes_at_once, write_now
from kgateway.server.outbox import WRITE_BYTES, Outbox


class IClientTransport(ITCPTransport, IConsumer, IPushProducer):
    """
    What a connection asks of Twisted's TCP and TLS transports.
    """

    SEND_LIMIT: int = Attribute("how many bytes a socket is given at once")
    bufferSize: int = Attribute("how many bytes a socket is asked for at once")


class Writer:
    """
    Writes what is in the outbox. Nothing once the transport is full, until there is room; nothing once it is gone.
    """

    __slots__ = ("_transport", "is_full", "is_gone", "outbox")

    def __init__(self, transport: IClientTransport) -> None:
        self.outbox = Outbox()
        self.is_full = self.is_gone = False
        self._transport = transport

    @property
    def may_wait(self) -> bool:
        """
        Whether there is an answer that costs least when it is written after all others of this turn of the reactor.
        """
        return 0 < self.outbox.size <= WRITE_BYTES and takes_at_once(self._transport)

    def write(self) -> None:
        """
        Write as far as the transport takes it.
        """
        outbox = self.outbox
        if outbox.size >= UNCOPIED_BYTES and not (self.is_full or self.is_gone):
            outbox.left(send_now(self._transport, outbox.all()))
        while outbox.size and not (self.is_full or self.is_gone):
            self._transport.writeSequence(outbox.take())

    def write_alone(self) -> None:
        """
        Write the one answer that a client waits for who does nothing else meanwhile.
        """
        if self.outbox.size > WRITE_BYTES:
            self.write()
        elif self.outbox.size and not (self.is_full or self.is_gone):
            write_now(self._transport, b"".join(self.outbox.take()))

    def lose(self) -> None:
        """
        There is nobody any more to write to.
        """
        self.is_gone = True
        self.outbox.clear()
