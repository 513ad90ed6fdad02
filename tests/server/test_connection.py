"""
One client: order, overlap, bounds, and what happens when it leaves.
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

from kgateway.cluster.view import Address
from kgateway.context import Session
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import STALL_SECONDS, Clients
from kgateway.server.connection import TURN_SECONDS, Connection
from kgateway.server.frame_queue import QUEUED_BYTES_MAX
from kgateway.server.outbox import WRITE_BYTES
from kgateway.server.pending import HangUp, Pending
from kgateway.server.unsent import STARTED_MAX
from kgateway.wire.malformed import Malformed, Place

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
    Answers frames by script: bytes at once, a Pending later, an exception as it is.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.started: list[bytes] = []

    def __call__(self, frame: bytes, session: Session) -> list[bytes] | Pending:
        self.started.append(frame)
        answer = self.script.pop(0) if self.script else frame.upper()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Pending) else [answer]


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
        """
        The reactor's next turn.
        """
        self.clock.advance(0)

    def leaves(self) -> None:
        self.connection.connectionLost(Failure(ConnectionDone()))


def _later(**options: bool) -> Pending:
    return Pending(**{"next_may_start": False, "polls": False} | options)


def test_answers_keep_the_order_of_the_requests() -> None:
    """
    An answer that is ready waits for the one before it.
    """
    first = _later(next_may_start=True)
    client = Client(first)
    client.sends(b"a", b"b")
    assert client.transport.value() == b""
    first.become([b"A"])
    client.turn()
    assert client.transport.value() == b"AB"


def test_a_request_that_overlaps_lets_the_next_one_start() -> None:
    """
    Produce requests are started one after the other, without waiting for their answers.
    """
    client = Client(_later(next_may_start=True), _later(next_may_start=True))
    client.sends(b"a", b"b", b"c")
    assert client.serving.started == [b"a", b"b", b"c"]


def test_any_other_request_holds_the_next_one_back() -> None:
    """
    The next frame starts when the one before it is answered.
    """
    first = _later()
    client = Client(first)
    client.sends(b"a", b"b")
    assert client.serving.started == [b"a"]
    first.become([b"A"])
    client.turn()
    assert client.serving.started == [b"a", b"b"]
    assert client.transport.value() == b"AB"


def test_an_answer_wakes_the_connection_in_the_next_turn_only() -> None:
    """
    Whoever completes an answer does not run the connection inside its own call.
    """
    first = _later()
    client = Client(first)
    client.sends(b"a")
    first.become([b"A"])
    assert client.transport.value() == b""
    client.turn()
    assert client.transport.value() == b"A"


def test_frames_may_come_byte_by_byte() -> None:
    """
    A client that sends one byte a second is served as any other.
    """
    client = Client()
    for byte in b"\0\0\0\3abc\0\0\0\1d":
        client.connection.dataReceived(bytes([byte]))
        client.clock.advance(1)
    assert client.transport.value() == b"ABCD"
    assert client.memory.small.used == 0


def test_small_answers_leave_in_one_write() -> None:
    """
    The answers to what came in one piece go to the transport together.
    """
    writes: list[list[bytes]] = []
    client = Client()
    client.transport.writeSequence = writes.append  # type: ignore[method-assign]
    client.connection.dataReceived(b"\0\0\0\1a" * 3)
    assert len(writes) == 1


def test_a_full_transport_stops_the_starting_of_requests() -> None:
    """
    Nothing is started or sent for a client that does not read, until it reads again.
    """
    client = Client()
    client.connection.pauseProducing()
    client.sends(b"a", b"b")
    assert client.serving.started == []
    client.connection.resumeProducing()
    client.turn()
    assert client.transport.value() == b"AB"


def test_a_transport_that_fills_up_while_answering_stops_there() -> None:
    """
    No more is started or written than it takes, however large the answers; the rest goes when it has room.
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


def test_a_large_answer_is_written_piece_by_piece() -> None:
    """
    What a transport takes it copies: of an answer of many batches it holds one more than it wanted.
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
def test_an_answer_that_is_alone_is_written_at_once(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """
    A client that waits for one answer and does nothing else costs no round of the reactor; many are written together.
    """
    written: list[bytes] = []
    monkeypatch.setattr("kgateway.server.writer.write_now", lambda transport, data: written.append(data))
    answer = _later(next_may_start=True)
    client = Client(answer, _later(next_may_start=True))
    client.sends(*[b"a"] if alone else [b"a", b"b"])
    answer.become([b"A", b"B"])
    client.turn()
    assert written == ([b"AB"] if alone else [])
    assert client.transport.value() == (b"" if alone else b"AB")


def test_a_large_answer_that_is_alone_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is written piece by piece, as any other.
    """
    monkeypatch.delattr("kgateway.server.writer.write_now")
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    answer.become([b"A" * WRITE_BYTES, b"B"])
    client.turn()
    assert client.transport.value() == b"A" * WRITE_BYTES + b"B"


def test_an_answer_that_is_alone_waits_for_a_full_transport() -> None:
    """
    It is not written before there is room.
    """
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    client.connection.pauseProducing()
    answer.become([b"A"])
    client.turn()
    assert client.transport.value() == b""
    client.connection.resumeProducing()
    client.turn()
    assert client.transport.value() == b"A"


def test_a_client_with_much_to_ask_gives_others_their_turn() -> None:
    """
    After some milliseconds the rest waits for the reactor's next turn.
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


def test_what_is_started_and_unanswered_is_bounded() -> None:
    """
    Past the bound a request waits, though those before it overlap.
    """
    answers = [_later(next_may_start=True) for _ in range(STARTED_MAX)]
    client = Client(*answers)
    client.sends(*[b"x"] * (STARTED_MAX + 1))
    assert len(client.serving.started) == STARTED_MAX
    answers[0].become([b"X"])
    client.turn()
    assert len(client.serving.started) == STARTED_MAX + 1


def test_too_much_that_cannot_start_pauses_the_reading() -> None:
    """
    Reading pauses past the bound and goes on when the queue has been worked off.
    """
    poll = _later()
    client = Client(poll)
    client.sends(b"a")
    assert client.transport.producerState == "producing"
    client.sends(b"x" * QUEUED_BYTES_MAX, b"y")
    assert client.transport.producerState == "paused"
    poll.become([b"A"])
    client.turn()
    assert client.transport.producerState == "producing"


def test_a_long_poll_does_not_pause_the_reading() -> None:
    """
    The end of a client that waits is seen, for its connection is read on.
    """
    client = Client(_later(polls=True))
    client.sends(b"poll", b"next")
    assert client.transport.producerState == "producing"


def test_a_frame_without_memory_waits_to_be_read() -> None:
    """
    Reading pauses while the bytes that a frame declares are held by others, and goes on when they are free.
    """
    client = Client(memory_bytes=FRAME_MAX)
    held = client.memory.large.reserve(FRAME_MAX, lambda: None)
    client.connection.dataReceived(FRAME_MAX.to_bytes(4, "big") + b"begun")
    assert client.transport.producerState == "paused"
    held.release()
    client.turn()
    assert client.transport.producerState == "producing"
    assert client.memory.large.used == FRAME_MAX


def test_the_bytes_of_a_frame_are_held_until_it_is_answered() -> None:
    """
    They are released with the answer, for a request points into its frame.
    """
    answer = _later()
    client = Client(answer)
    frame = b"f" * 100_000
    client.connection.dataReceived(len(frame).to_bytes(4, "big"))
    client.connection.dataReceived(frame)
    assert client.memory.large.used == 100_000
    answer.become([b"done"])
    assert client.memory.large.used == 0


def test_a_poll_holds_no_memory() -> None:
    """
    It points into no frame, and there may be many that wait for long.
    """
    client = Client(_later(polls=True))
    client.sends(b"poll")
    assert client.memory.small.used == 0


def test_a_poll_ends_when_reading_pauses_behind_it() -> None:
    """
    A client that is not read could leave unseen; and it has asked for a megabyte of other things meanwhile.
    """
    poll = _later(polls=True)
    client = Client(poll)
    work = Deferred[None](lambda _: poll.become([b"P"]))
    work.addErrback(lambda failure: None)
    poll.follow(work)
    client.sends(b"poll", b"x" * QUEUED_BYTES_MAX, b"y")
    client.turn()
    assert client.transport.value().startswith(b"P")
    assert client.transport.producerState == "producing"


def test_a_connection_that_is_gone_leaves_nothing_behind() -> None:
    """
    It goes with its last reference, and with it all it had received and not sent: no collector of cycles is needed.
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
        del client.transport.producer, client.transport.protocol  # as those of Twisted do
        del client.connection, client.transport
        assert gone() is None
    finally:
        gc.enable()


def test_a_small_frame_that_must_wait_is_accounted_for() -> None:
    """
    Queued frames and those whose answer is to come hold their bytes.
    """
    answer = _later()
    client = Client(answer)
    client.sends(b"12345", b"678")
    assert client.memory.small.used == 8
    answer.become([b"done"])
    client.turn()
    assert client.memory.small.used == 0


@pytest.mark.parametrize("wrong", [Malformed(Place("Any", 0, "field"), 0, "no"), HangUp("no")], ids=str)
def test_a_broken_request_closes_the_connection_after_the_answers_before_it(wrong: Exception) -> None:
    """
    What came before is answered, what came after is not started, and the reason is told.
    """
    first = _later(next_may_start=True)
    client = Client(first, wrong)
    client.sends(b"a", b"broken", b"c")
    assert client.serving.started == [b"a", b"broken"]
    assert not client.transport.disconnecting
    first.become([b"A"])
    client.turn()
    assert client.transport.value() == b"A"
    assert client.transport.disconnecting
    assert client.complaints == [str(wrong)]


def test_an_answer_that_hangs_up_closes_the_connection() -> None:
    """
    A request that ends without an answer ends its connection.
    """
    answer = _later()
    client = Client(answer)
    client.sends(b"a")
    answer.fail("no records for acks=0")
    client.turn()
    assert client.transport.disconnecting
    assert client.complaints == ["no records for acks=0"]


def test_nothing_is_answered_after_an_answer_that_hangs_up() -> None:
    """
    The answers behind it would be taken for its own.
    """
    broken, behind = _later(next_may_start=True), _later(next_may_start=True)
    client = Client(broken, behind)
    client.sends(b"a", b"b")
    behind.become([b"B"])
    broken.fail("no records for acks=0")
    client.turn()
    assert client.transport.value() == b""
    assert client.transport.disconnecting


@pytest.mark.parametrize("size", [FRAME_MAX + 1, (1 << 32) - 1])
def test_an_impossible_size_closes_the_connection(size: int) -> None:
    """
    Requests before it are answered first.
    """
    client = Client()
    client.connection.dataReceived(b"\0\0\0\1a" + size.to_bytes(4, "big"))
    assert client.transport.value() == b"A"
    assert client.transport.disconnecting
    assert len(client.complaints) == 1


def test_nothing_is_read_from_a_connection_that_ends() -> None:
    """
    A client that broke the protocol cannot fill memory while its last answers are awaited.
    """
    client = Client(_later(next_may_start=True), HangUp("no"))
    client.sends(b"a", b"broken")
    assert client.transport.producerState == "paused"
    client.sends(b"more")
    client.connection.dataReceived(b"\0\0\1\0half")
    assert client.serving.started == [b"a", b"broken"]
    assert client.memory.small.used == 1


def test_a_client_that_leaves_ends_its_long_poll() -> None:
    """
    The wait is given up, and all its memory is free.
    """
    cancelled: list[Deferred[None]] = []
    poll, work = _later(polls=True), Deferred[None](cancelled.append)
    work.addErrback(lambda failure: None)
    client = Client(poll)
    poll.follow(work)
    client.sends(b"poll", b"queued")
    client.connection.dataReceived(b"\0\0\0\7half")
    client.leaves()
    poll.become([])
    assert cancelled == [work]
    assert client.memory.small.used == 0
    assert len(client.clients) == 0


def test_an_append_that_has_started_goes_on_without_its_client() -> None:
    """
    Only a wait is given up.
    """
    cancelled: list[Deferred[None]] = []
    append = _later(next_may_start=True)
    append.follow(Deferred(cancelled.append))
    client = Client(append)
    client.sends(b"append")
    client.leaves()
    append.become([b"late"])
    client.turn()
    assert cancelled == []
    assert client.transport.value() == b""


def test_a_failure_of_ours_closes_its_connection_alone() -> None:
    """
    A connection that cannot go on is closed rather than silent, and the others of the same turn go on.
    """
    broken, sound = _later(), _later()
    client = Client(broken, sound)
    client.sends(b"a")
    other_transport, other = client.connect()
    other.dataReceived(b"\0\0\0\1b")
    client.transport.write = lambda data: 1 / 0  # type: ignore[method-assign]
    broken.become([b"A"])
    sound.become([b"B"])
    with capturedLogs() as events:
        client.turn()
    assert client.transport.aborted
    assert other_transport.value() == b"B"
    assert [event["log_failure"].type for event in events if "log_failure" in event] == [ZeroDivisionError]


def test_finishing_answers_what_has_started() -> None:
    """
    Long polls answer at once, appends when they are done; then the connection closes.
    """
    append, poll = _later(next_may_start=True), _later(polls=True)
    client = Client(append, poll)
    work = Deferred[None](lambda _: poll.become([b"P"]))
    work.addErrback(lambda failure: None)
    poll.follow(work)
    client.sends(b"a", b"p", b"not started")
    finished = client.clients.finish(10)
    client.turn()
    assert not client.transport.disconnecting
    append.become([b"A"])
    client.turn()
    assert client.transport.value() == b"AP"
    assert client.transport.disconnecting
    assert not finished.called
    client.leaves()
    assert finished.called
    assert client.clock.getDelayedCalls() == []


def test_finishing_has_a_bound() -> None:
    """
    What takes longer is closed by force.
    """
    client = Client(_later())
    client.sends(b"a")
    finished = client.clients.finish(10)
    client.clock.advance(9.9)
    assert not client.transport.aborted
    client.clock.advance(0.2)
    assert client.transport.aborted
    assert finished.called


def test_finishing_without_clients_ends_at_once() -> None:
    """
    And no timer is left.
    """
    client = Client()
    client.leaves()
    assert client.clients.finish(10).called
    assert client.clock.getDelayedCalls() == []


def _wait(client: Client, seconds: float) -> None:
    client.clock.pump([1] * int(seconds))


def test_an_idle_connection_is_closed() -> None:
    """
    After max_idle_ms without a byte; activity starts the time anew.
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
    It keeps its connection as long as the answer takes.
    """
    client = Client(_later())
    client.sends(b"a")
    _wait(client, 700)
    assert not client.transport.aborted


def test_a_client_that_does_not_read_is_idle() -> None:
    """
    What it was answered is not held for ever; as soon as it reads again, its time starts anew.
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


def test_a_frame_that_stalls_closes_its_connection() -> None:
    """
    Memory reserved for a frame that brings no byte is free again after the stall time.
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
    Who is not read cannot send; the time counts from when it is read again.
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
