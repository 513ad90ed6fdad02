"""
All connections of a gateway: what they share, and the watch over those that are idle or stall.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.context import Session
from kgateway.server.budget import RequestMemory
from kgateway.server.seen import seen

if TYPE_CHECKING:
    from kgateway.server.connection import Connection

STALL_SECONDS = 30  # how long a frame that has begun may bring no byte
_SWEEP_SECONDS = 5

# Told of a client that broke the protocol, and how.
Complain = Callable[[Session, Exception | str], None]


class Clients:
    """
    The open connections.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        memory: RequestMemory,
        *,
        frame_bytes_max: int,
        max_idle_seconds: float,
        complain: Complain,
    ) -> None:
        self.seconds = clock.seconds
        self.memory = memory
        self.frame_bytes_max = frame_bytes_max
        self.complain = complain
        self._clock = clock
        self._max_idle = max_idle_seconds
        self._open: set[Connection] = set()
        self._soon: list[Callable[[], None]] = []
        self._sweep: IDelayedCall | None = None
        self._all_gone: Deferred[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def looks(self, now_ms: Callable[[], int]) -> list[Callable[[], dict[str, Any]]]:
        """
        A way to look at each connection that is open now.
        """

        def look(connection: "Connection") -> dict[str, Any]:
            return seen(connection, self.seconds(), now_ms())

        return [partial(look, connection) for connection in self._open]

    def soon(self, call: Callable[[], None]) -> None:
        """
        Call in the reactor's next turn; one timer for all.
        """
        if not self._soon:
            self._clock.callLater(0, self._call_soon)
        self._soon.append(call)

    def opened(self, connection: "Connection") -> None:
        """
        A client has come.
        """
        self._open.add(connection)
        if self._sweep is None:
            self._sweep = self._clock.callLater(_SWEEP_SECONDS, self._close_the_silent)

    def closed(self, connection: "Connection") -> None:
        """
        A client has gone.
        """
        self._open.discard(connection)
        if self._all_gone and not self._open:
            self._all_gone.callback(None)

    def send_away(self) -> None:
        """
        Answer what has started and close all connections: clients are to ask elsewhere.
        """
        for connection in list(self._open):
            connection.finish()

    def finish(self, seconds: float) -> Deferred[None]:
        """
        Answer what has started and close all connections, those that take longer than this by force.
        """
        self._all_gone = Deferred()
        gone = self._all_gone
        deadline = self._clock.callLater(seconds, self._abort_all)
        self.send_away()
        if not self._open:
            gone.callback(None)
        return gone.addCallback(lambda _: self._end_timers(deadline))

    def _call_soon(self) -> None:
        calls, self._soon = self._soon, []
        for call in calls:
            call()

    def _close_the_silent(self) -> None:
        now, self._sweep = self.seconds(), None
        for connection in list(self._open):
            silent = now - connection.last_seen
            if connection.is_stalled and silent > STALL_SECONDS:
                self.complain(connection.session, f"a frame stopped half way, {silent:.0f} s ago")
                connection.abort()
            elif connection.is_idle and silent > self._max_idle:
                self._log.debug("{host} closed: idle for {silent:.0f} s", host=connection.session.host, silent=silent)
                connection.abort()
        if self._open:
            self._sweep = self._clock.callLater(_SWEEP_SECONDS, self._close_the_silent)

    def _abort_all(self) -> None:
        self._log.warn("{count} connections closed by force", count=len(self._open))
        for connection in list(self._open):
            connection.abort()

    def _end_timers(self, deadline: IDelayedCall) -> None:
        for timer in (deadline, self._sweep):
            if timer and timer.active():
                timer.cancel()
