"""
The reactor's side of one client: frames in, answers out, in order.

One loop sends what is ready and starts what may start; it never runs inside itself, and what ends later wakes it in the
reactor's next turn. A transport that is full stops both sides; too much that is received and not started, or a frame
for which there is no memory yet, stops only the reading.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.context import Session
from kgateway.server.addresses import address_of
from kgateway.server.budget import Reservation
from kgateway.server.clients import Clients
from kgateway.server.frame_queue import FrameQueue
from kgateway.server.outbox import WRITE_BYTES
from kgateway.server.pending import HangUp, Pending
from kgateway.server.seen import HEAD_BYTES, waiting
from kgateway.server.unsent import Unsent
from kgateway.server.writer import IClientTransport, Writer
from kgateway.wire.frames import Framer
from kgateway.wire.malformed import Malformed

SEND_BYTES = 1 << 20  # that the socket may take at once; Twisted gives it 128 KiB, and then asks whether it may go on
READ_BYTES = 127 << 10  # asked of the socket at once; for 128 KiB and more the C library goes to the system each time
TURN_SECONDS = 0.002  # of one connection, then the others have theirs

Serve = Callable[[bytes, Session], list[bytes] | Pending]


@implementer(IPushProducer)
class Connection(Protocol):
    """
    One client.
    """

    transport: IClientTransport
    _log = Logger()

    def __init__(self, serve: Serve, session: Session, clients: Clients) -> None:
        self.session = session
        self.opened = self.last_seen = clients.seconds()
        self.bytes_in = self.requests = 0
        self.first_head = b""  # of the first request, for those who ask who this is
        self._serve = serve
        self._clients = clients
        self._framer = Framer(clients.frame_bytes_max)
        self._queue = FrameQueue()
        self._answers = Unsent()
        self._running = self._woken = self._paused = self._ending = self._closing = False

    def connectionMade(self) -> None:
        self._writer = Writer(self.transport)
        self._outbox = self._writer.outbox  # answered, not written
        self.session.local = address_of(self.transport.getHost())
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        self.transport.registerProducer(self, True)  # it says when its buffer is full
        self.transport.SEND_LIMIT = SEND_BYTES
        self.transport.bufferSize = READ_BYTES
        self._clients.opened(self)

    def dataReceived(self, data: bytes) -> None:
        self.last_seen = self._clients.seconds()
        self.bytes_in += len(data)
        frames = self._framer.feed(data)
        if frames and not self._ending:
            self.requests += len(frames)
            self.first_head = self.first_head or frames[0][:HEAD_BYTES]
            self._queue.extend(frames)
            self._run(asked_once=len(frames) == 1)
        self._listen_or_not()

    @property
    def is_idle(self) -> bool:
        """
        Whether nothing is asked, or the client does not read what is answered.
        """
        return self._writer.is_full or not (self._answers or self._queue.frames)

    @property
    def is_stalled(self) -> bool:
        """
        Whether the bytes of a frame that has begun are late, though they would be read.
        """
        return bool(self._framer.declared) and not self._paused

    @property
    def bytes_out(self) -> int:
        return self._outbox.written

    @property
    def waits_for(self) -> str:
        return waiting(self._writer, self._answers, self._framer, self._paused)

    def finish(self) -> None:
        """
        Answer what has started, without waiting for more to happen, and close.
        """
        self._answers.cut_short()
        self._end()
        self._wake()

    def abort(self) -> None:
        """
        Close at once.
        """
        self.transport.abortConnection()

    def pauseProducing(self) -> None:
        self._writer.is_full = True

    def resumeProducing(self) -> None:
        self._writer.is_full = False
        self.last_seen = self._clients.seconds()
        self._writer.write()
        if not self._writer.is_full:
            self._wake()

    def stopProducing(self) -> None:
        self._writer.is_full = True

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._writer.lose()
        self.session.connected = False
        self._end()
        waiting, self._answers = self._answers, Unsent()
        waiting.cut_short()
        self._clients.closed(self)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._clients.soon(self._run_again)

    def _run_again(self) -> None:
        """
        Go on. Twisted closes a connection whose `dataReceived` fails; here that is for us to do.
        """
        self._woken = False
        if self._writer.is_gone:
            return
        try:
            if len(self._answers) > 1 or self._queue.frames or self._writer.is_full:
                self._run()
            else:
                self._send_last()
            self._listen_or_not()
        except Exception:
            self._log.failure("a connection from {host} failed", host=self.session.host)
            self.abort()

    def _run(self, asked_once: bool = False) -> None:
        """
        Send what is ready, start what may start, until neither goes on or the turn is over. The answer to a client
        that has asked once may leave at the end of the reactor's turn, with those to all others.
        """
        if self._running:
            return
        self._running = True
        turn_ends = self._clients.seconds() + TURN_SECONDS
        try:
            if self._outbox.size:
                self._writer.write()
            while not self._writer.is_full and self._step():
                if self._outbox.size >= WRITE_BYTES:
                    self._writer.write()
                if self._clients.seconds() > turn_ends:
                    self._wake()
                    break
        finally:
            self._running = False
            if asked_once and self._writer.may_wait:
                self._wake()
            elif self._outbox.size:
                self._writer.write()

    def _step(self) -> bool:
        """
        Send one answer or start one request, if one can be.
        """
        if self._answers and self._answers[0].ready:
            self._send(self._answers.popleft())
        elif self._queue.frames and self._answers.next_may_start:
            self._start(*self._queue.take())
        else:
            return False
        return True

    def _send(self, answer: Pending) -> None:
        if answer.hang_up:
            self._answers.clear()
            self._break_off(answer.hang_up)
        else:
            self._outbox.put(answer.buffers)

    def _send_last(self) -> None:
        """
        Send the one answer that there is, if it is ready.
        """
        if self._answers and self._answers[0].ready:
            self._send(self._answers.popleft())
        self._writer.write_alone()

    def _start(self, frame: bytes, reservation: Reservation | None) -> None:
        try:
            answer = self._serve(frame, self.session)
        except (Malformed, HangUp) as error:
            _release(reservation)
            self._break_off(error)
            return
        if isinstance(answer, Pending) and not answer.polls:
            self._answers.expect(answer, self._wake, reservation or self._reserve(len(frame)))
            return
        _release(reservation)
        if isinstance(answer, Pending):
            self._answers.expect(answer, self._wake)
        elif self._answers:
            self._answers.append(Pending.of(answer))
        else:
            self._outbox.put(answer)

    def _listen_or_not(self) -> None:
        """
        Read on, or pause, or close where nothing is left to do.
        """
        if not (self._queue.frames or self._framer.declared or self._framer.failure or self._ending or self._paused):
            return  # nearly always
        if not self._ending:
            if self._queue.frames or self._framer.declared:
                self._queue.account(self._framer.declared, self._reserve)
            elif self._framer.failure:
                self._break_off(self._framer.failure)
        if self._ending and not (self._answers or self._outbox.size):
            self._close()
        elif self._paused != (self._ending or self._queue.is_heavy):
            self._pause_or_resume()

    def _close(self) -> None:
        """
        Close when all that was written has left.
        """
        if not (self._closing or self._writer.is_gone):
            self._closing = True
            self.transport.unregisterProducer()  # a producer that is paused would keep the connection open
            self.transport.loseConnection()

    def _pause_or_resume(self) -> None:
        self._paused = not self._paused
        if self._paused:
            # That the client goes will not be seen now; and who sends so much behind a poll does not wait for it.
            self._answers.cut_short()
            self.transport.pauseProducing()
        else:
            self.last_seen = self._clients.seconds()
            self.transport.resumeProducing()

    def _reserve(self, size: int) -> Reservation:
        return self._clients.memory.reserve(size, self._wake)

    def _break_off(self, reason: Exception | str) -> None:
        """
        The client broke the protocol: nothing more is read from it.
        """
        if not self._ending:
            self._clients.complain(self.session, reason)
            self._end()

    def _end(self) -> None:
        """
        Start no more requests; what has started is answered still.
        """
        self._ending = True
        self._queue.clear()


def _release(reservation: Reservation | None) -> None:
    if reservation:
        reservation.release()
