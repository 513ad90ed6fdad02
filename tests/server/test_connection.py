"""
One connection: order, overlap, bounds, and its end.
"""

import gc
from collections.abc import Sequence
from typing import Any
from weakref import ref

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs
from twisted.python.failure import Failure

from kgateway.action_queue import ActionQueue
from kgateway.cluster.view import Address
from kgateway.context import Session
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import STALL_SECONDS, Clients
from kgateway.server.connection import TURN_SECONDS, Connection
from kgateway.server.request_queue import QUEUED_BYTES_MAX, STARTED_MAX, HangUp, PendingAnswer
from kgateway.server.writer import WRITE_BYTES
from kgateway.wire.errors import Malformed, MessageField

FRAME_MAX = 100 << 20


class Transport(StringTransport):
    """
    A TCP transport that can be aborted.
    """

    aborted = False
    protocol: Connection

    def setTcpNoDelay(self, enabled: bool) -> None: ...
    def setTcpKeepAlive(self, enabled: bool) -> None: ...

    def abortConnection(self) -> None:
        self.aborted = True
        self.protocol.connectionLost(Failure(ConnectionDone()))

    def loseConnection(self) -> None:
        assert self.producer is None, "a paused producer would hold the connection open"
        super().loseConnection()


class Serving:
    """
    Answers frames by script: with bytes at once, a PendingAnswer, or an exception.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.started: list[bytes] = []

    def __call__(self, frame: bytes, session: Session) -> list[bytes] | PendingAnswer:
        self.started.append(frame)
        answer = self.script.pop(0) if self.script else frame.upper()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, PendingAnswer) else [answer]


class Client:
    """
    A connection with its surroundings.
    """

    def __init__(self, *script: Any, memory_bytes: int = 1 << 30) -> None:
        self.clock = Clock()
        self.memory = RequestMemory(memory_bytes, FRAME_MAX)
        self.complaints: list[str] = []
        self.clients = Clients(
            self.clock,
            ActionQueue(self.clock),
            self.memory,
            frame_bytes_max=FRAME_MAX,
            max_idle_seconds=600,
            complain=lambda session, reason: self.complaints.append(str(reason)),
        )
        self.serving = Serving(*script)
        self.transport, self.connection = self.connect()

    def connect(self) -> tuple[Transport, Connection]:
        transport = Transport()
        session = Session(listener="plaintext", host="10.0.0.1", local=Address("", 0))
        connection = Connection(self.serving, session, self.clients)
        transport.protocol = connection
        connection.makeConnection(transport)
        return transport, connection

    def sends(self, *frames: bytes) -> None:
        self.connection.dataReceived(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    def turn(self) -> None:
        self.clock.advance(0)

    def leaves(self) -> None:
        self.connection.connectionLost(Failure(ConnectionDone()))


def _later(**options: bool) -> PendingAnswer:
    return PendingAnswer(**{"next_may_start": False, "polls": False} | options)


def test_answers_have_the_order_of_the_requests() -> None:
    """
    An answer that is ready waits for the one before it.
    """
    first = _later(next_may_start=True)
    client = Client(first)
    client.sends(b"a", b"b")
    assert client.transport.value() == b""
    first.succeed([b"A"])
    client.turn()
    assert client.transport.value() == b"AB"


def test_a_request_that_overlaps_lets_the_next_one_start() -> None:
    """
    Produce requests start without waiting for earlier answers.
    """
    client = Client(_later(next_may_start=True), _later(next_may_start=True))
    client.sends(b"a", b"b", b"c")
    assert client.serving.started == [b"a", b"b", b"c"]


def test_other_requests_hold_the_next_one_back() -> None:
    """
    It starts once they are answered.
    """
    first = _later()
    client = Client(first)
    client.sends(b"a", b"b")
    assert client.serving.started == [b"a"]
    first.succeed([b"A"])
    client.turn()
    assert client.serving.started == [b"a", b"b"]
    assert client.transport.value() == b"AB"


def test_an_answer_wakes_the_connection_in_the_next_turn() -> None:
    """
    Completing an answer does not run the connection within the same call.
    """
    first = _later()
    client = Client(first)
    client.sends(b"a")
    first.succeed([b"A"])
    assert client.transport.value() == b""
    client.turn()
    assert client.transport.value() == b"A"


def test_frames_may_arrive_byte_by_byte() -> None:
    """
    A client that sends a byte a second is served as any other.
    """
    client = Client()
    for byte in b"\0\0\0\3abc\0\0\0\1d":
        client.connection.dataReceived(bytes([byte]))
        client.clock.advance(1)
    assert client.transport.value() == b"ABCD"
    assert client.memory.small.used == 0


def test_small_answers_are_written_together() -> None:
    """
    Answers to requests that arrived together are one write.
    """
    writes: list[list[bytes]] = []
    client = Client()
    client.transport.writeSequence = writes.append  # type: ignore[method-assign]
    client.connection.dataReceived(b"\0\0\0\1a" * 3)
    assert len(writes) == 1


def test_a_full_transport_starts_no_requests() -> None:
    """
    Nothing is started or sent for a client that does not read.
    """
    client = Client()
    client.connection.pauseProducing()
    client.sends(b"a", b"b")
    assert client.serving.started == []
    client.connection.resumeProducing()
    client.turn()
    assert client.transport.value() == b"AB"


def test_a_transport_that_fills_up_stops_the_answers() -> None:
    """
    No more is started or written than it accepts, however large the answers; the rest follows when it has room.
    """
    client = Client(b"A" * WRITE_BYTES, b"B")
    whole = client.transport.writeSequence

    def fill(data: Sequence[bytes]) -> None:
        whole(data)
        client.connection.pauseProducing()

    client.transport.writeSequence = fill  # type: ignore[method-assign]
    client.sends(b"a", b"b")
    assert client.serving.started == [b"a"]
    client.connection.resumeProducing()
    client.turn()
    assert client.transport.value() == b"A" * WRITE_BYTES + b"B"


def test_a_large_answer_is_written_in_pieces() -> None:
    """
    A transport copies what it accepts: it holds at most one batch more of an answer than it wants.
    """
    client = Client()
    batches = [bytes([number]) * WRITE_BYTES for number in range(5)]
    client.connection._serve = lambda frame, session: list(batches)
    whole, written = client.transport.writeSequence, list[int]()

    def fill(data: Sequence[bytes]) -> None:
        whole(data)
        written.append(sum(map(len, data)))
        client.connection.pauseProducing()

    client.transport.writeSequence = fill  # type: ignore[method-assign]
    client.sends(b"fetch")
    for _ in batches:
        assert not client.clients.finish(10).called
        client.connection.resumeProducing()
        client.turn()
    assert written == [WRITE_BYTES] * 5
    assert client.transport.value() == b"".join(batches)
    assert client.transport.disconnecting


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with another"])
def test_a_single_answer_is_written_at_once(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """
    A client with one outstanding request costs no turn of the reactor; many answers are written together.
    """
    written: list[bytes] = []
    monkeypatch.setattr("kgateway.server.writer.write_now", lambda transport, data: written.append(data))
    answer = _later(next_may_start=True)
    client = Client(answer, _later(next_may_start=True))
    client.sends(*[b"a"] if alone else [b"a", b"b"])
    answer.succeed([b"A", b"B"])
    client.turn()
    assert written == ([b"AB"] if alone else [])
    assert client.transport.value() == (b"" if alone else b"AB")


def test_a_large_single_answer_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is written in pieces, as any other.
    """
    monkeypatch.delattr("kgateway.server.writer.write_now")
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    answer.succeed([b"A" * WRITE_BYTES, b"B"])
    client.turn()
    assert client.transport.value() == b"A" * WRITE_BYTES + b"B"


def test_a_single_answer_waits_for_a_full_transport() -> None:
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    client.connection.pauseProducing()
    answer.succeed([b"A"])
    client.turn()
    assert client.transport.value() == b""
    client.connection.resumeProducing()
    client.turn()
    assert client.transport.value() == b"A"


def test_a_busy_client_yields_to_others() -> None:
    """
    After some milliseconds its other requests wait for the reactor's next turn.
    """
    client = Client()

    def serve(frame: bytes, session: Session) -> list[bytes]:
        client.clock.rightNow += TURN_SECONDS / 2
        return client.serving(frame, session)  # type: ignore[return-value]

    client.connection._serve = serve
    client.sends(*[b"x"] * 10)
    assert len(client.serving.started) == 3
    assert client.transport.value() == b"XXX"
    client.turn()
    assert client.transport.value() == b"X" * 10


def test_started_requests_are_bounded() -> None:
    """
    Beyond the bound a request waits, even if those before it overlap.
    """
    answers = [_later(next_may_start=True) for _ in range(STARTED_MAX)]
    client = Client(*answers)
    client.sends(*[b"x"] * (STARTED_MAX + 1))
    assert len(client.serving.started) == STARTED_MAX
    answers[0].succeed([b"X"])
    client.turn()
    assert len(client.serving.started) == STARTED_MAX + 1


def test_too_many_waiting_requests_pause_reading() -> None:
    """
    Reading resumes when the queue has been worked off.
    """
    poll = _later()
    client = Client(poll)
    client.sends(b"a")
    assert client.transport.producerState == "producing"
    client.sends(b"x" * QUEUED_BYTES_MAX, b"y")
    assert client.transport.producerState == "paused"
    poll.succeed([b"A"])
    client.turn()
    assert client.transport.producerState == "producing"


def test_a_long_poll_does_not_pause_reading() -> None:
    """
    The connection is read on, so that the end of a waiting client is noticed.
    """
    client = Client(_later(polls=True))
    client.sends(b"poll", b"next")
    assert client.transport.producerState == "producing"


def test_a_frame_without_memory_pauses_reading() -> None:
    """
    Reading resumes when the bytes that it declares are free.
    """
    client = Client(memory_bytes=FRAME_MAX)
    held = client.memory.large.reserve(FRAME_MAX, lambda: None)
    client.connection.dataReceived(FRAME_MAX.to_bytes(4, "big") + b"begun")
    assert client.transport.producerState == "paused"
    held.release()
    client.turn()
    assert client.transport.producerState == "producing"
    assert client.memory.large.used == FRAME_MAX


def test_frames_hold_their_memory_until_answered() -> None:
    """
    A request points into its frame.
    """
    answer = _later()
    client = Client(answer)
    frame = b"f" * 100_000
    client.connection.dataReceived(len(frame).to_bytes(4, "big"))
    client.connection.dataReceived(frame)
    assert client.memory.large.used == 100_000
    answer.succeed([b"done"])
    assert client.memory.large.used == 0


def test_a_long_poll_holds_no_memory() -> None:
    """
    It points into no frame, and many may wait for long.
    """
    client = Client(_later(polls=True))
    client.sends(b"poll")
    assert client.memory.small.used == 0


def test_a_long_poll_ends_when_reading_pauses() -> None:
    """
    Otherwise a client that is not read, after another megabyte of requests, could disconnect unnoticed.
    """
    poll = _later(polls=True)
    client = Client(poll)
    work = Deferred[None](lambda _: poll.succeed([b"P"]))
    work.addErrback(lambda failure: None)
    poll.follow(work)
    client.sends(b"poll", b"x" * QUEUED_BYTES_MAX, b"y")
    client.turn()
    assert client.transport.value().startswith(b"P")
    assert client.transport.producerState == "producing"


def test_a_closed_connection_is_freed_at_once() -> None:
    """
    Its last reference frees everything it had received and not sent, without the garbage collector.
    """
    client = Client(_later(polls=True))
    client.sends(b"poll", b"queued")
    client.connection.dataReceived(b"\0\0\0\7half")
    client.connection._outbox.put([b"never read"])
    gone = ref(client.connection)
    gc.disable()
    try:
        client.leaves()
        client.turn()
        assert not client.connection._outbox.size
        assert not client.connection.session.connected
        del client.transport.producer, client.transport.protocol  # Twisted's own do likewise
        del client.connection, client.transport
        assert gone() is None
    finally:
        gc.enable()


def test_a_waiting_small_frame_holds_memory() -> None:
    """
    So do frames whose answer is pending.
    """
    answer = _later()
    client = Client(answer)
    client.sends(b"12345", b"678")
    assert client.memory.small.used == 8
    answer.succeed([b"done"])
    client.turn()
    assert client.memory.small.used == 0


@pytest.mark.parametrize("wrong", [Malformed(MessageField("Any", 0, "field"), 0, "no"), HangUp("no")], ids=str)
def test_a_malformed_request_closes_the_connection(wrong: Exception) -> None:
    """
    Earlier requests are answered, later ones are not started, and the reason is remembered.
    """
    first = _later(next_may_start=True)
    client = Client(first, wrong)
    client.sends(b"a", b"broken", b"c")
    assert client.serving.started == [b"a", b"broken"]
    assert not client.transport.disconnecting
    first.succeed([b"A"])
    client.turn()
    assert client.transport.value() == b"A"
    assert client.transport.disconnecting
    assert client.complaints == [str(wrong)]


def test_a_handler_may_close_the_connection() -> None:
    """
    It hangs up instead of answering.
    """
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    answer.fail("no records for acks=0")
    client.turn()
    assert client.transport.disconnecting
    assert client.complaints == ["no records for acks=0"]


def test_nothing_is_sent_after_hanging_up() -> None:
    """
    Later answers would be mistaken for the missing one.
    """
    broken, behind = _later(next_may_start=True), _later(next_may_start=True)
    client = Client(broken, behind)
    client.sends(b"a", b"b")
    behind.succeed([b"B"])
    broken.fail("no records for acks=0")
    client.turn()
    assert client.transport.value() == b""
    assert client.transport.disconnecting


@pytest.mark.parametrize("size", [FRAME_MAX + 1, (1 << 32) - 1])
def test_an_impossible_size_closes_the_connection(size: int) -> None:
    """
    Earlier requests are answered first.
    """
    client = Client()
    client.connection.dataReceived(b"\0\0\0\1a" + size.to_bytes(4, "big"))
    assert client.transport.value() == b"A"
    assert client.transport.disconnecting
    assert len(client.complaints) == 1


def test_a_closing_connection_is_not_read() -> None:
    """
    A client that broke the protocol cannot fill memory while its last answers are pending.
    """
    client = Client(_later(next_may_start=True), HangUp("no"))
    client.sends(b"a", b"broken")
    assert client.transport.producerState == "paused"
    client.sends(b"more")
    client.connection.dataReceived(b"\0\0\1\0half")
    assert client.serving.started == [b"a", b"broken"]
    assert client.memory.small.used == 1


def test_a_disconnect_ends_a_long_poll() -> None:
    """
    All its memory is free.
    """
    cancelled: list[Deferred[None]] = []
    poll, work = _later(polls=True), Deferred[None](cancelled.append)
    work.addErrback(lambda failure: None)
    client = Client(poll)
    poll.follow(work)
    client.sends(b"poll", b"queued")
    client.connection.dataReceived(b"\0\0\0\7half")
    client.leaves()
    poll.succeed([])
    assert cancelled == [work]
    assert client.memory.small.used == 0
    assert len(client.clients) == 0


def test_a_started_append_continues_without_its_client() -> None:
    """
    Only waiting is cancelled.
    """
    cancelled: list[Deferred[None]] = []
    append = _later(next_may_start=True)
    append.follow(Deferred(cancelled.append))
    client = Client(append)
    client.sends(b"append")
    client.leaves()
    append.succeed([b"late"])
    client.turn()
    assert cancelled == []
    assert client.transport.value() == b""


def test_an_internal_failure_closes_one_connection() -> None:
    """
    It is closed rather than silent, and others of the same turn continue.
    """
    broken, sound = _later(), _later()
    client = Client(broken, sound)
    client.sends(b"a")
    other_transport, other = client.connect()
    other.dataReceived(b"\0\0\0\1b")
    client.transport.write = lambda data: 1 / 0  # type: ignore[method-assign]
    broken.succeed([b"A"])
    sound.succeed([b"B"])
    with capturedLogs() as events:
        client.turn()
    assert client.transport.aborted
    assert other_transport.value() == b"B"
    assert [event["log_failure"].type for event in events if "log_failure" in event] == [ZeroDivisionError]


def test_finish_answers_started_requests() -> None:
    """
    Long polls answer at once, appends when they are done; then the connection closes.
    """
    append, poll = _later(next_may_start=True), _later(polls=True)
    client = Client(append, poll)
    work = Deferred[None](lambda _: poll.succeed([b"P"]))
    work.addErrback(lambda failure: None)
    poll.follow(work)
    client.sends(b"a", b"p", b"not started")
    finished = client.clients.finish(10)
    client.turn()
    assert not client.transport.disconnecting
    append.succeed([b"A"])
    client.turn()
    assert client.transport.value() == b"AP"
    assert client.transport.disconnecting
    assert not finished.called
    client.leaves()
    assert finished.called
    assert client.clock.getDelayedCalls() == []


def test_finish_is_bounded() -> None:
    """
    Connections that take longer are aborted.
    """
    client = Client(_later())
    client.sends(b"a")
    finished = client.clients.finish(10)
    client.clock.advance(9.9)
    assert not client.transport.aborted
    client.clock.advance(0.2)
    assert client.transport.aborted
    assert finished.called


def test_finish_without_clients_is_immediate() -> None:
    """
    No timer is left.
    """
    client = Client()
    client.leaves()
    assert client.clients.finish(10).called
    assert client.clock.getDelayedCalls() == []


def _wait(client: Client, seconds: float) -> None:
    client.clock.pump([1] * int(seconds))


def test_an_idle_connection_is_closed() -> None:
    """
    It is closed after max_idle_ms without a byte; activity restarts the time.
    """
    client = Client()
    _wait(client, 500)
    client.sends(b"a")
    _wait(client, 595)
    assert not client.transport.aborted
    _wait(client, 11)
    assert client.transport.aborted
    assert client.complaints == []


def test_a_client_that_waits_for_an_answer_is_not_idle() -> None:
    """
    Its connection is kept as long as the answer takes.
    """
    client = Client(_later())
    client.sends(b"a")
    _wait(client, 700)
    assert not client.transport.aborted


def test_a_client_that_does_not_read_is_idle() -> None:
    """
    Its answers are not held for ever; when it reads again its time restarts.
    """
    client = Client()
    client.connection.pauseProducing()
    client.sends(b"a")
    _wait(client, 500)
    client.connection.resumeProducing()
    client.connection.pauseProducing()
    _wait(client, 590)
    assert not client.transport.aborted
    _wait(client, 20)
    assert client.transport.aborted


def test_a_stalled_frame_closes_its_connection() -> None:
    """
    The memory reserved for a frame is free again when no byte of it arrives for the stall time.
    """
    client = Client()
    client.connection.dataReceived((1 << 20).to_bytes(4, "big") + b"begun")
    _wait(client, STALL_SECONDS)
    assert client.memory.large.used == 1 << 20
    _wait(client, 10)
    assert client.transport.aborted
    assert client.memory.large.used == 0
    assert len(client.complaints) == 1


def test_a_frame_that_waits_for_memory_does_not_stall() -> None:
    """
    A client that is not read cannot send; its time restarts with reading.
    """
    client = Client(memory_bytes=FRAME_MAX)
    held = client.memory.large.reserve(FRAME_MAX, lambda: None)
    client.connection.dataReceived((1 << 20).to_bytes(4, "big") + b"begun")
    _wait(client, 100)
    held.release()
    client.turn()
    _wait(client, STALL_SECONDS - 1)
    assert not client.transport.aborted
    _wait(client, 10)
    assert client.transport.aborted
