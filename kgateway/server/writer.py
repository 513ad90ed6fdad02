"""
Takes answers from the handlers to the socket of one client.
"""

from twisted.internet.interfaces import IConsumer, IPushProducer, ITCPTransport
from zope.interface import Attribute

from kgateway.tcp import UNCOPIED_BYTES, send_now, takes_at_once, write_now

WRITE_BYTES = 64 << 10  # of small answers that are written together

_NOTHING: list[bytes] = []  # all empty outboxes share it; nothing is ever put into it


class Outbox:
    """
    Answers that are not written yet. Small answers are taken together and a large one piece by piece, because a
    transport copies what it is given. `size` counts the bytes that are here, `written` those that have left.
    """

    __slots__ = ("_buffers", "size", "written")

    def __init__(self) -> None:
        self.size = self.written = 0
        self._buffers = _NOTHING

    def put(self, buffers: list[bytes]) -> None:
        """
        Take over an answer; the caller may not use the list any more.
        """
        if self.size:
            self._buffers += buffers
        else:
            self._buffers = buffers
        for buffer in buffers:
            self.size += len(buffer)

    def take(self) -> list[bytes]:
        """
        The buffers to write next.
        """
        if self.size <= WRITE_BYTES:
            everything = self._buffers
            self.written += self.size
            self.clear()
            return everything
        count = taken = 0
        while taken < WRITE_BYTES:
            taken += len(self._buffers[count])
            count += 1
        part = self._buffers[:count]
        del self._buffers[:count]
        self.size -= taken
        self.written += taken
        return part

    def all(self) -> list[bytes]:
        return list(self._buffers)

    def drop(self, size: int) -> None:
        """
        Drop this many bytes from the front, which have been sent.
        """
        self.size -= size
        self.written += size
        count = 0
        while size and size >= len(self._buffers[count]):
            size -= len(self._buffers[count])
            count += 1
        del self._buffers[:count]
        if size:
            self._buffers[0] = self._buffers[0][size:]

    def clear(self) -> None:
        self._buffers = _NOTHING
        self.size = 0


class IClientTransport(ITCPTransport, IConsumer, IPushProducer):
    """
    What a connection uses of Twisted's TCP and TLS transports.
    """

    SEND_LIMIT: int = Attribute("bytes for one send")
    bufferSize: int = Attribute("bytes for one recv")


class ResponseWriter:
    """
    Writes what is in the outbox, unless the transport is full or gone.
    """

    __slots__ = ("_transport", "is_full", "is_gone", "outbox")

    def __init__(self, transport: IClientTransport) -> None:
        self.outbox = Outbox()
        self.is_full = self.is_gone = False
        self._transport = transport

    @property
    def may_wait(self) -> bool:
        """
        Whether there is an answer that is cheapest to write at the end of this turn of the reactor, after all others.
        """
        return 0 < self.outbox.size <= WRITE_BYTES and takes_at_once(self._transport)

    def write(self) -> None:
        outbox = self.outbox
        if outbox.size >= UNCOPIED_BYTES and not (self.is_full or self.is_gone):
            outbox.drop(send_now(self._transport, outbox.all()))
        while outbox.size and not (self.is_full or self.is_gone):
            if takes_at_once(self._transport):
                write_now(self._transport, b"".join(outbox.take()))
            else:
                self._transport.writeSequence(outbox.take())

    def write_alone(self) -> None:
        """
        Write the only outstanding answer of a client that waits for it.
        """
        if self.outbox.size > WRITE_BYTES:
            self.write()
        elif self.outbox.size and not (self.is_full or self.is_gone):
            write_now(self._transport, b"".join(self.outbox.take()))

    def close(self) -> None:
        self.is_gone = True
        self.outbox.clear()
