"""
Fetch sessions (KIP-227): a client names its partitions once, then only what changes, and is told only what changed.

A session is opened by a fetch with epoch 0, which is answered in full; each fetch after it counts the epoch up by one.
Sessions only save work: where there is no room for one, its client is answered in full, without a session.

Kafka's rule makes room: the session that was unused for longest goes, if that is two minutes or more; else the smallest
of those that were opened so long ago, if the new one has more partitions.
"""

from collections.abc import Sequence
from secrets import randbelow

from kgateway.context import GatewayParts
from kgateway.fetching.wanted import Answer, Key, Wanted, asked_for, forgotten
from kgateway.messages.fetch import FetchRequest
from kgateway.wire.errors import ErrorCode, KafkaError

Told = Sequence[tuple[Wanted, Answer]]

NO_SESSION = 0
FIRST_EPOCH = 0  # opens a session
FINAL_EPOCH = -1  # closes it, or does without

_LARGEST = (1 << 31) - 1
_SETTLED_S = 120.0


class Session:
    """
    The partitions that a client reads, in the order in which they are served.
    """

    __slots__ = ("by_id", "epoch", "opened", "used", "wanted")

    def __init__(self, wanted: dict[Key, Wanted], by_id: bool, now: float) -> None:
        self.wanted = wanted
        self.by_id = by_id
        self.opened = self.used = now
        self.epoch = FIRST_EPOCH + 1  # of the next fetch

    def change(self, request: FetchRequest) -> None:
        """
        Take in what a request says of its partitions.
        """
        for key, asked in asked_for(request, self.by_id):
            known = self.wanted.get(key)
            if known:
                known.ask(asked)
            else:
                self.wanted[key] = Wanted(key[0], asked)
        for key in forgotten(request, self.by_id):
            self.wanted.pop(key, None)

    def used_at(self, now: float) -> None:
        """
        Expect the next fetch.
        """
        self.used = now
        self.epoch = self.epoch + 1 if self.epoch < _LARGEST else FIRST_EPOCH + 1

    def serve_last(self, key: Key) -> None:
        """
        Let the other partitions come first the next time.
        """
        self.wanted[key] = self.wanted.pop(key)


class Turn:
    """
    One fetch: the partitions it is about and, once they are read, the session and the partitions its answer names.
    Without a session that is all of them.
    """

    def __init__(self, wanted: dict[Key, Wanted]) -> None:
        self.wanted = list(wanted.values())

    def tell(self, told: Told) -> tuple[int, Told]:
        """
        What to send; the session, if there is one, takes it for sent.
        """
        return NO_SESSION, told


class Opening(Turn):
    """
    The fetch that opens a session.
    """

    def __init__(self, sessions: "FetchSessions", wanted: dict[Key, Wanted], by_id: bool) -> None:
        super().__init__(wanted)
        self._sessions, self._partitions, self._by_id = sessions, wanted, by_id

    def tell(self, told: Told) -> tuple[int, Told]:
        for wanted, answer in told:
            wanted.tell(answer)
        return self._sessions.open(self._partitions, self._by_id), told


class Continuing(Turn):
    """
    A later fetch of a session.
    """

    def __init__(self, session_id: int, session: Session) -> None:
        super().__init__(session.wanted)
        self._id, self._session, self._epoch = session_id, session, session.epoch

    def tell(self, told: Told) -> tuple[int, Told]:
        if self._session.epoch != self._epoch:
            raise _out_of_step(self._id, self._session.epoch, self._epoch)  # it went on while this one waited
        news = [(wanted, answer) for wanted, answer in told if wanted.tell(answer)]
        for wanted, answer in news:
            if answer.records:
                self._session.serve_last(wanted.key)
        return self._id, news


class FetchSessions:
    """
    The sessions of a gateway.
    """

    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._most = gateway.settings.fetch_sessions
        self._sessions: dict[int, Session] = {}  # that were unused for longest come first

    def turn(self, request: FetchRequest, by_id: bool) -> Turn:
        """
        What this fetch is about. A fetch that is no next one of a session ends the session it names.
        """
        if request.session_epoch not in (FIRST_EPOCH, FINAL_EPOCH):
            return self._continue(request, by_id)
        self._sessions.pop(request.session_id, None)
        wanted = {key: Wanted(key[0], asked) for key, asked in asked_for(request, by_id)}
        return Turn(wanted) if request.session_epoch == FINAL_EPOCH else Opening(self, wanted, by_id)

    def open(self, wanted: dict[Key, Wanted], by_id: bool) -> int:
        """
        The id of a new session, or that of none.
        """
        if not self._make_room(len(wanted)):
            return NO_SESSION
        session_id = _draw_id()
        while session_id in self._sessions:
            session_id = _draw_id()
        self._sessions[session_id] = Session(wanted, by_id, self._clock.seconds())
        return session_id

    def _continue(self, request: FetchRequest, by_id: bool) -> Turn:
        session_id = request.session_id
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        if request.session_epoch != session.epoch:
            raise _out_of_step(session_id, session.epoch, request.session_epoch)
        if by_id != session.by_id:
            reason = f"session {session_id} began with topic {'ids' if session.by_id else 'names'}"
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, reason)
        session.change(request)
        del self._sessions[session_id]
        if not session.wanted:
            return Turn({})
        session.used_at(self._clock.seconds())
        self._sessions[session_id] = session
        return Continuing(session_id, session)

    def _make_room(self, partitions: int) -> bool:
        if len(self._sessions) < self._most:
            return True
        victim = self._victim(partitions)
        if victim is None:
            return False
        del self._sessions[victim]
        return True

    def _victim(self, partitions: int) -> int | None:
        """
        The session that goes for one with so many partitions.
        """
        before = self._clock.seconds() - _SETTLED_S
        for session_id, session in self._sessions.items():
            if session.used < before:
                return session_id
            break
        settled = [(len(one.wanted), key) for key, one in self._sessions.items() if one.opened < before]
        size, session_id = min(settled, default=(partitions, 0))
        return session_id if size < partitions else None


def _draw_id() -> int:
    return 1 + randbelow(_LARGEST)


def _out_of_step(session_id: int, expected: int, came: int) -> KafkaError:
    reason = f"session {session_id} expects epoch {expected}, not {came}"
    return KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, reason)
