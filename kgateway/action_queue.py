"""
What one request causes for others: a long poll reads what was appended, members get the responses for which they
waited.

The client that sent the request gets its response first. So what a request causes is an *action*, which waits in this
queue, as in the queue of this name in Kafka's broker, until the responses of the reactor's turn are written. Actions
are then done in the same turn, in their order, and the responses that they make are written after them. None of them
waits for another turn, unless there is too much: all together may take as long as the first of them has waited, which
is the time that requests took meanwhile, and then the sockets have a turn. So neither can a stream of requests keep
actions waiting, nor a thousand woken long polls the requests.
"""

from collections import deque
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.log_messages import ACTION_FAILED

TURN_SECONDS = 0.002  # for the actions of a turn, if they have not waited longer

Action = Callable[[], None]


class ActionQueue:
    """
    Writes the responses of a turn of the reactor, then does what the requests have caused. All connections share one
    timer.
    """

    __slots__ = ("_actions", "_clock", "_due", "_since", "_writes")
    _log = Logger()

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._writes: deque[Action] = deque()
        self._actions: deque[Action] = deque()
        self._since = 0.0  # when the first of the actions was added, or the last turn of actions ended
        self._due = False  # whether this turn of the reactor ends with a call

    def write(self, write: Action) -> None:
        """
        Write a response when everything that has arrived in this turn of the reactor is handled.
        """
        self._writes.append(write)
        if not self._due:
            self._call_at_end()

    def add(self, action: Action) -> None:
        """
        Do this once the responses of this turn are written.
        """
        if not self._actions:
            self._since = self._clock.seconds()
        self._actions.append(action)
        if not self._due:
            self._call_at_end()

    def _call_at_end(self) -> None:
        self._due = True
        self._clock.callLater(0, self._end_turn)

    def _end_turn(self) -> None:
        try:
            self._write_all()
            if self._actions:
                self._act()
                self._write_all()
        finally:
            self._due = False
            if self._actions or self._writes:
                self._call_at_end()

    def _write_all(self) -> None:
        """
        Call each write once; what these add comes next time. If one of them fails, the others stay for the next turn.
        """
        writes = self._writes
        for _ in range(len(writes)):
            writes.popleft()()

    def _act(self) -> None:
        seconds, actions = self._clock.seconds, self._actions
        began = seconds()
        ends = began + max(TURN_SECONDS, began - self._since)
        while actions:
            action = actions.popleft()
            try:
                action()
            except Exception:
                self._log.failure(ACTION_FAILED)
            self._since = seconds()
            if self._since > ends:
                break
