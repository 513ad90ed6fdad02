"""
The reactor's side of one client: frames in, answers out, in order.

One loop sends what is ready and starts what may start. It never runs inside itself: an answer that becomes ready later
wakes it at the end of the reactor's turn, in which answers come before what they cause for others (action_queue.py). A
full transport stops sending and starting. Too many received and unstarted requests, or a frame for which there is no
memory yet, stop only the reading.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.context import Session
from kgateway.log_messages import CONNECTION_FAILED
from kgateway.server.addresses import address_of, shared
from kgateway.server.budget import Reservation
from kgateway.server.clients import HEAD_BYTES, Clients, next_event
from kgateway.server.request_queue import FrameQueue, HangUp, PendingAnswer, PendingAnswers
from kgateway.server.writer import WRITE_BYTES, IClientTransport, ResponseWriter
from kgateway.wire.errors import Malformed
from kgateway.wire.frames import Framer

SEND_BYTES = 1 << 20  # for one send; Twisted sends 128 KiB, and then waits until the socket is writable again
READ_BYTES = 127 << 10  # for one recv; from 128 KiB on malloc goes to the system each time
TURN_SECONDS = 0.002  # for one connection, before the others get their turn

Serve = Callable[[bytes, Session], list[bytes] | PendingAnswer]


@implementer(IPushProducer)
class Connection(Protocol):
    transport: IClientTransport
    _log = Logger()

    def __init__(self, serve: Serve, session: Session, clients: Clients) -> None:
        self.session = session
        self.opened = self.last_seen = clients.seconds()
        self.bytes_in = self.requests = 0
        self.first_head = b""  # of the first request: it has the client id, for `kgateway clients`
        self._serve = serve
        self._clients = clients
        self._framer = Framer(clients.frame_bytes_max)
        self._queue = FrameQueue()
        self._answers = PendingAnswers()
        self._running = self._woken = self._paused = self._ending = self._closing = False

    def connectionMade(self) -> None:
        self._writer = ResponseWriter(self.transport)
        self._outbox = self._writer.outbox  # answered, not written
        self.session.local = shared(address_of(self.transport.getHost()))
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        self.transport.registerProducer(self, True)  # it says when its buffer is full
        self.transport.SEND_LIMIT = SEND_BYTES
        self.transport.bufferSize = READ_BYTES
        self._clients.add(self)

    def dataReceived(self, data: bytes) -> None:
        self.last_seen = self._clients.seconds()
        self.bytes_in += len(data)
        frames = self._framer.feed(data)
        if frames and not self._ending:
            self.requests += len(frames)
            self.first_head = self.first_head or frames[0][:HEAD_BYTES]
            self._queue.extend(frames)
            self._run(single_request=len(frames) == 1)
        self._update_reading()

    @property
    def is_idle(self) -> bool:
        """
        Whether the client asks for nothing, or does not read its answers.
        """
        return self._writer.is_full or not (self._answers or self._queue.frames)

    @property
    def is_stalled(self) -> bool:
        """
        Whether there is an incomplete frame, though reading is not paused.
        """
        return bool(self._framer.declared) and not self._paused

    @property
    def peer(self) -> IAddress:
        return self.transport.getPeer()

    @property
    def bytes_out(self) -> int:
        return self._outbox.written

    @property
    def waits_for(self) -> str:
        return next_event(self._writer, self._answers, self._framer, self._paused)

    def finish(self) -> None:
        """
        Answer what has started, end long polls now, and close.
        """
        self._answers.cut_short()
        self._end()
        self._wake()

    def abort(self) -> None:
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
        self._writer.close()
        self.session.connected = False
        self._end()
        unsent, self._answers = self._answers, PendingAnswers()
        unsent.cut_short()
        self._clients.remove(self)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._clients.write_soon(self._run_again)

    def _run_again(self) -> None:
        """
        Twisted closes a connection whose `dataReceived` raises. It does not make this call, so this must do the same.
        """
        self._woken = False
        if self._writer.is_gone:
            return
        try:
            if len(self._answers) > 1 or self._queue.frames or self._writer.is_full:
                self._run()
            else:
                self._send_last()
            self._update_reading()
        except Exception:
            self._log.failure(CONNECTION_FAILED, host=self.session.host)
            self.abort()

    def _run(self, single_request: bool = False) -> None:
        """
        Send what is ready and start what may start, until nothing is left or the turn is over. If one request came, its
        answer may wait for the end of the reactor's turn and leave together with those of other connections.
        """
        if self._running:
            return
        self._running = True
        writer, outbox, seconds = self._writer, self._outbox, self._clients.seconds
        turn_ends = seconds() + TURN_SECONDS
        try:
            if outbox.size:
                writer.write()
            while not writer.is_full:
                answers = self._answers
                if answers and answers[0].ready:
                    self._send(answers.pop(0))
                elif self._queue.frames and (not answers or answers.next_may_start):
                    self._start(*self._queue.take())
                else:
                    break
                if outbox.size >= WRITE_BYTES:
                    writer.write()
                if seconds() > turn_ends:
                    self._wake()
                    break
        finally:
            self._running = False
            if single_request and writer.may_wait:
                self._wake()
            elif outbox.size:
                writer.write()

    def _send(self, answer: PendingAnswer) -> None:
        if answer.hang_up:
            self._answers.clear()
            self._break_off(answer.hang_up)
        else:
            self._outbox.put(answer.buffers)

    def _send_last(self) -> None:
        """
        Send the only outstanding answer, if it is ready.
        """
        if self._answers and self._answers[0].ready:
            self._send(self._answers.pop(0))
        self._writer.write_alone()

    def _start(self, frame: bytes, reservation: Reservation | None) -> None:
        try:
            answer = self._serve(frame, self.session)
        except (Malformed, HangUp) as error:
            if reservation:
                reservation.release()
            self._break_off(error)
            return
        if isinstance(answer, PendingAnswer) and not answer.polls:
            self._answers.expect(answer, self._wake, reservation or self._reserve(len(frame)))
            return
        if reservation:
            reservation.release()
        if isinstance(answer, PendingAnswer):
            self._answers.expect(answer, self._wake)
        elif self._answers:
            self._answers.append(PendingAnswer.of(answer))
        else:
            self._outbox.put(answer)

    def _update_reading(self) -> None:
        """
        Resume or pause reading, or close if nothing is left to do.
        """
        if not (self._queue.frames or self._framer.declared or self._framer.failure or self._ending or self._paused):
            return  # the usual case
        if not self._ending:
            if self._queue.frames or self._framer.declared:
                self._queue.reserve_memory(self._framer.declared, self._reserve)
            elif self._framer.failure:
                self._break_off(self._framer.failure)
        if self._ending and not (self._answers or self._outbox.size):
            self._close()
        elif self._paused != (self._ending or self._queue.must_pause):
            self._pause_or_resume()

    def _close(self) -> None:
        if not (self._closing or self._writer.is_gone):
            self._closing = True
            self.transport.unregisterProducer()  # a paused producer would keep the connection open
            self.transport.loseConnection()

    def _pause_or_resume(self) -> None:
        self._paused = not self._paused
        if self._paused:
            # A disconnect is not noticed while reading is paused, and a client that sends this much does not wait for
            # its long poll.
            self._answers.cut_short()
            self.transport.pauseProducing()
        else:
            self.last_seen = self._clients.seconds()
            self.transport.resumeProducing()

    def _reserve(self, size: int) -> Reservation:
        return self._clients.memory.reserve(size, self._wake)

    def _break_off(self, reason: Exception | str) -> None:
        if not self._ending:
            self._clients.complain(self.session, reason)
            self._end()

    def _end(self) -> None:
        """
        Start no more requests; those that have started are still answered.
        """
        self._ending = True
        self._queue.clear()
