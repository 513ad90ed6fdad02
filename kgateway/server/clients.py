"""
All connections of a gateway: what they share, the watch over those that are idle or stall, and how operators see each.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.action_queue import ActionQueue
from kgateway.context import Session
from kgateway.log_messages import CLOSED_BY_FORCE
from kgateway.plurals import counted
from kgateway.server.addresses import address_of
from kgateway.server.budget import RequestMemory
from kgateway.server.request_queue import PendingAnswers
from kgateway.server.writer import ResponseWriter
from kgateway.wire.codec import decoder
from kgateway.wire.errors import Malformed
from kgateway.wire.frames import Framer
from kgateway.wire.headers import RequestHeader

HEAD_BYTES = 10 + 255  # the fixed part of a request header, and the longest client id that is usual
_CLASSIC_HEADER = 1  # the flexible header, v2, has the client id in the same form

_read_header = decoder(RequestHeader, _CLASSIC_HEADER)


STALL_SECONDS = 30  # how long an incomplete frame may bring no byte
_SWEEP_SECONDS = 5


class Client(Protocol):
    session: Session
    opened: float
    last_seen: float
    requests: int
    bytes_in: int
    first_head: bytes

    @property
    def peer(self) -> IAddress: ...

    @property
    def bytes_out(self) -> int: ...

    @property
    def waits_for(self) -> str: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def is_stalled(self) -> bool: ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...


def describe(connection: Client, now: float, now_ms: int) -> dict[str, Any]:
    """
    The row of one connection in `kgateway clients`. It is made only when somebody asks.
    """
    session = connection.session
    return {
        "client_id": client_id(connection.first_head),
        "software": session.software,
        "software_version": session.software_version,
        "address": str(address_of(connection.peer)),
        "listener": session.listener,
        "principal": session.principal,
        "since_ms": now_ms - round((now - connection.opened) * 1000),
        "idle_s": round(now - connection.last_seen, 3),
        "requests": connection.requests,
        "bytes_in": connection.bytes_in,
        "bytes_out": connection.bytes_out,
        "waits_for": connection.waits_for,
    }


def next_event(writer: ResponseWriter, answers: PendingAnswers, framer: Framer, is_paused: bool) -> str:
    """
    Say in words what a connection waits for.
    """
    if writer.is_full:
        return "the client to read its responses"
    if answers:
        return f"the response to {answers[0].api or 'a request'}"
    if framer.declared:
        return f"{'memory for' if is_paused else 'the rest of'} a request of {framer.declared} bytes"
    return "memory" if is_paused else "a request"


def client_id(head: bytes) -> str:
    if not head:
        return ""
    try:
        return _read_header(head, 0)[0].client_id or ""
    except Malformed:
        return ""


# Called when a client breaks the protocol, with the reason.
Complain = Callable[[Session, Exception | str], None]


class Clients:
    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        actions: ActionQueue,
        memory: RequestMemory,
        *,
        frame_bytes_max: int,
        max_idle_seconds: float,
        complain: Complain,
    ) -> None:
        self.seconds = clock.seconds
        self.write_soon = actions.write
        self.memory = memory
        self.frame_bytes_max = frame_bytes_max
        self.complain = complain
        self._clock = clock
        self._max_idle = max_idle_seconds
        self._open: set[Client] = set()
        self._sweep: IDelayedCall | None = None
        self._all_gone: Deferred[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def describers(self, now_ms: Callable[[], int]) -> list[Callable[[], dict[str, Any]]]:
        """
        For each connection that is open now, a call that describes it.
        """
        return [partial(self._describe, connection, now_ms) for connection in self._open]

    def add(self, connection: Client) -> None:
        self._open.add(connection)
        if self._sweep is None:
            self._sweep = self._clock.callLater(_SWEEP_SECONDS, self._close_silent)

    def remove(self, connection: Client) -> None:
        self._open.discard(connection)
        if self._all_gone and not self._open:
            self._all_gone.callback(None)

    def close_all(self) -> None:
        """
        Answer what has started and close all connections, so that clients look for another gateway.
        """
        for connection in list(self._open):
            connection.finish()

    def finish(self, seconds: float) -> Deferred[None]:
        """
        Answer what has started and close all connections; abort those that take longer than this.
        """
        self._all_gone = Deferred()
        gone = self._all_gone
        deadline = self._clock.callLater(seconds, self._abort_all)
        self.close_all()
        if not self._open:
            gone.callback(None)
        return gone.addCallback(lambda _: self._end_timers(deadline))

    def _describe(self, connection: Client, now_ms: Callable[[], int]) -> dict[str, Any]:
        return describe(connection, self.seconds(), now_ms())

    def _close_silent(self) -> None:
        now, self._sweep = self.seconds(), None
        for connection in list(self._open):
            silent = now - connection.last_seen
            if silent <= STALL_SECONDS and silent <= self._max_idle:
                continue  # there may be thousands, and no other client is served meanwhile
            if silent > STALL_SECONDS and connection.is_stalled:
                self.complain(connection.session, f"a frame stopped half-way, {silent:.0f} s ago")
                connection.abort()
            elif silent > self._max_idle and connection.is_idle:
                self._log.debug("{host} closed: idle for {silent:.0f} s", host=connection.session.host, silent=silent)
                connection.abort()
        if self._open:
            self._sweep = self._clock.callLater(_SWEEP_SECONDS, self._close_silent)

    def _abort_all(self) -> None:
        self._log.warn(CLOSED_BY_FORCE, connections=counted(len(self._open), "connection"))
        for connection in list(self._open):
            connection.abort()

    def _end_timers(self, deadline: IDelayedCall) -> None:
        for timer in (deadline, self._sweep):
            if timer and timer.active():
                timer.cancel()
