"""
Fetch sessions (KIP-227): a client names its partitions once; from then on requests and answers have only changes.

A session is opened by a fetch with epoch 0, which is answered in full. Each later fetch counts the epoch up by one.
Sessions only save work: if there is no room for one, its client is answered in full, without a session.

Room is made by Kafka's rule: the session that was unused for longest is removed, if that is two minutes or more; else
the smallest one that was opened at least two minutes ago, if the new one has more partitions.
"""

from collections.abc import Iterator, Sequence
from secrets import randbelow

from kgateway.context import GatewayParts
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

RequestPartition = FetchRequest.Topic.Partition
ResponsePartition = FetchResponse.Response.Partition
FetchKey = tuple[str | Uuid, int]  # the topic, as the client calls it, and the partition

UNKNOWN = -1
NO_SESSION = 0
FIRST_EPOCH = 0  # opens a session
FINAL_EPOCH = -1  # closes the session, or asks for none

_LARGEST = (1 << 31) - 1
_SETTLED_S = 120.0


class FetchPartition:
    """
    A partition that a client reads: from where, how much, and what the last answer said of its log.
    """

    __slots__ = (
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start",
        "max_bytes",
        "name",
        "offset",
        "topic",
    )

    def __init__(self, topic: str | Uuid, asked: RequestPartition) -> None:
        self.topic = topic
        self.name = topic if isinstance(topic, str) else None  # once the topic of an id is found
        self.index = asked.partition
        self.high_watermark = self.log_start = UNKNOWN
        self.update(asked)

    def __str__(self) -> str:
        return f"{self.name or self.topic}-{self.index}"

    @property
    def key(self) -> FetchKey:
        return self.topic, self.index

    def update(self, asked: RequestPartition) -> None:
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def has_news(self, answer: ResponsePartition) -> bool:
        """
        Whether the answer has something new for the client. An error always is, and so is the first answer after one,
        because an error comes without a high watermark.
        """
        moved = (answer.high_watermark, answer.log_start_offset) != (self.high_watermark, self.log_start)
        self.high_watermark, self.log_start = answer.high_watermark, answer.log_start_offset
        return moved or bool(answer.records or answer.error_code or answer.diverging_epoch)


PartitionAnswers = Sequence[tuple[FetchPartition, ResponsePartition]]


def asked_for(request: FetchRequest, by_id: bool) -> Iterator[tuple[FetchKey, RequestPartition]]:
    for topic in request.topics:
        called = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            yield (called, asked.partition), asked


def forgotten(request: FetchRequest, by_id: bool) -> Iterator[FetchKey]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic, index)


class FetchSession:
    """
    The partitions that a client reads, in the order in which they are served.
    """

    __slots__ = ("by_id", "epoch", "opened", "used", "wanted")

    def __init__(self, wanted: dict[FetchKey, FetchPartition], by_id: bool, now: float) -> None:
        self.wanted = wanted
        self.by_id = by_id
        self.opened = self.used = now
        self.epoch = FIRST_EPOCH + 1  # of the next fetch

    def change(self, request: FetchRequest) -> None:
        if not (request.topics or request.forgotten_topics_data):
            return  # the usual case
        for key, asked in asked_for(request, self.by_id):
            known = self.wanted.get(key)
            if known:
                known.update(asked)
            else:
                self.wanted[key] = FetchPartition(key[0], asked)
        for key in forgotten(request, self.by_id):
            self.wanted.pop(key, None)

    def mark_used(self, now: float) -> None:
        self.used = now
        self.epoch = self.epoch + 1 if self.epoch < _LARGEST else FIRST_EPOCH + 1

    def move_to_end(self, key: FetchKey) -> None:
        """
        Let the other partitions come first the next time.
        """
        self.wanted[key] = self.wanted.pop(key)


class FetchContext:
    """
    One fetch without a session: the partitions it is about, and the answer to it. Kafka has the same contexts.
    """

    def __init__(self, wanted: dict[FetchKey, FetchPartition]) -> None:
        self.wanted = list(wanted.values())

    def respond(self, answers: PartitionAnswers) -> tuple[int, PartitionAnswers]:
        """
        The id of the session and the partitions to send. A session assumes that they are sent.
        """
        return NO_SESSION, answers


class FullFetchContext(FetchContext):
    def __init__(self, sessions: "FetchSessions", wanted: dict[FetchKey, FetchPartition], by_id: bool) -> None:
        super().__init__(wanted)
        self._sessions, self._partitions, self._by_id = sessions, wanted, by_id

    def respond(self, answers: PartitionAnswers) -> tuple[int, PartitionAnswers]:
        for wanted, answer in answers:
            wanted.has_news(answer)
        return self._sessions.open(self._partitions, self._by_id), answers


class IncrementalFetchContext(FetchContext):
    def __init__(self, session_id: int, session: FetchSession) -> None:
        super().__init__(session.wanted)
        self._id, self._session, self._epoch = session_id, session, session.epoch

    def respond(self, answers: PartitionAnswers) -> tuple[int, PartitionAnswers]:
        if self._session.epoch != self._epoch:
            raise _out_of_step(self._id, self._session.epoch, self._epoch)  # another fetch came while this one waited
        news = [(wanted, answer) for wanted, answer in answers if wanted.has_news(answer)]
        for wanted, answer in news:
            if answer.records:
                self._session.move_to_end(wanted.key)
        return self._id, news


class FetchSessions:
    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._most = gateway.settings.fetch_sessions
        self._sessions: dict[int, FetchSession] = {}  # the least recently used first

    def context_of(self, request: FetchRequest, by_id: bool) -> FetchContext:
        """
        The context of a fetch. A fetch that is not the next one of its session ends the session.
        """
        if request.session_epoch not in (FIRST_EPOCH, FINAL_EPOCH):
            return self._continue(request, by_id)
        self._sessions.pop(request.session_id, None)
        wanted = {key: FetchPartition(key[0], asked) for key, asked in asked_for(request, by_id)}
        return FetchContext(wanted) if request.session_epoch == FINAL_EPOCH else FullFetchContext(self, wanted, by_id)

    def open(self, wanted: dict[FetchKey, FetchPartition], by_id: bool) -> int:
        if not self._make_room(len(wanted)):
            return NO_SESSION
        session_id = _draw_id()
        while session_id in self._sessions:
            session_id = _draw_id()
        self._sessions[session_id] = FetchSession(wanted, by_id, self._clock.seconds())
        return session_id

    def _continue(self, request: FetchRequest, by_id: bool) -> FetchContext:
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
            return FetchContext({})
        session.mark_used(self._clock.seconds())
        self._sessions[session_id] = session
        return IncrementalFetchContext(session_id, session)

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
        The session to remove for one with this many partitions.
        """
        before = self._clock.seconds() - _SETTLED_S
        for session_id, session in self._sessions.items():
            if session.used < before:
                return session_id
            break
        old_enough = [(len(session.wanted), key) for key, session in self._sessions.items() if session.opened < before]
        size, session_id = min(old_enough, default=(partitions, 0))
        return session_id if size < partitions else None


def _draw_id() -> int:
    return 1 + randbelow(_LARGEST)


def _out_of_step(session_id: int, expected: int, came: int) -> KafkaError:
    reason = f"session {session_id} expects epoch {expected}, not {came}"
    return KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, reason)
