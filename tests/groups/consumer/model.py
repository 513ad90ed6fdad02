"""
Clients of a consumer group that behave as real ones do, and a group over rows in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import ClusterView, Node, PartitionState, Topic
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.group import Answer, Client, ConsumerGroup
from kgateway.groups.records import Row
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

REQUEST_TOPIC = ConsumerGroupHeartbeatRequest.TopicPartition
START_MS = 1_700_000_000_000


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def topic(name: str, partitions: int, number: int) -> Topic:
    state = PartitionState(1, 0, (1,), (1,))
    return Topic(topic_id(number), name, (state,) * partitions, TopicConfig())


class Watched(ClusterView):
    """
    A view that can be referenced weakly.
    """


class Log:
    """
    Rows in the order of their writes. A write can be refused, or can wait until it is settled, with success or
    failure.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.refusal: KafkaError | None = None
        self.slow = False
        self.unsettled: list[tuple[Deferred[None], Sequence[Row]]] = []

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        if self.refusal:
            raise self.refusal
        if not self.slow:
            self.rows += rows
            return None
        written: Deferred[None] = Deferred()
        self.unsettled.append((written, list(rows)))
        return written

    def settle(self, error: KafkaError | None = None) -> None:
        """
        End all writes in progress.
        """
        while self.unsettled:
            written, rows = self.unsettled.pop(0)
            if error is None:
                self.rows += rows
                written.callback(None)
            else:
                written.errback(error)

    def compacted(self) -> list[Row]:
        """
        The last row of each key that has a value, in the order of their writes.
        """
        last: dict[str, Row] = {}
        for row in self.rows:
            last.pop(repr(row.key), None)
            if row.value is not None:
                last[repr(row.key)] = row
        return list(last.values())


class Cluster:
    """
    Topics, a clock, and one group that can be reloaded.
    """

    def __init__(self, config: GroupConfig | None = None) -> None:
        self.clock = Clock()
        self.log = Log()
        self.config = config or GroupConfig(assignment_interval_ms=0)
        self.view = ClusterView("cluster", (Node(1),), 1)
        self.denied: set[str] = set()
        self.next_topic = 1
        self.group = self.new_group()

    def now_ms(self) -> int:
        return START_MS + int(self.clock.seconds() * 1000)

    def new_group(self) -> ConsumerGroup:
        return ConsumerGroup(
            "g",
            clock=self.clock,
            now_ms=self.now_ms,
            write=self.log.write,
            view=lambda: self.view,
            config=lambda: self.config,
        )

    def reload(self) -> None:
        self.group.stop()
        self.group = self.new_group()
        for row in self.log.compacted():
            self.group.replay(row)
        self.group.loaded()

    def add_topic(self, name: str, partitions: int) -> Topic:
        made = topic(name, partitions, self.next_topic)
        self.next_topic += 1
        self.view = self.view.with_topic(made)
        return made

    def grow_topic(self, name: str, partitions: int) -> None:
        before = self.view.topics[name]
        grown = before.partitions + (before.partitions[0],) * partitions
        self.view = self.view.with_topic(Topic(before.id, name, grown, before.config))

    def drop_topic(self, name: str) -> None:
        self.view = self.view.without_topic(self.view.topics[name])

    def client(self) -> Client:
        return Client("client", "/127.0.0.1", lambda name: name not in self.denied)

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> Answer | Deferred[Answer]:
        return self.group.heartbeat(request, self.client())

    def told(self, request: ConsumerGroupHeartbeatRequest) -> Answer:
        answer = self.ask(request)
        assert not isinstance(answer, Deferred)
        return answer


@dataclass
class Consumer:
    """
    A client of the consumer protocol: it sends its full state when it joins and after an error, and else only
    changes.
    """

    cluster: Cluster
    member_id: str
    topics: list[str] | None = None
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 60_000
    epoch: int = 0
    owned: set[tuple[Uuid, int]] = field(default_factory=set)
    target: set[tuple[Uuid, int]] = field(default_factory=set)
    sends_all: bool = True
    said_owned: set[tuple[Uuid, int]] | None = None
    revokes: bool = True  # else its application is stuck
    fenced: int = 0
    gave_up: ErrorCode | None = None
    heard_at: float = 0  # the time of its last heartbeat
    stuck_since: float | None = None

    def request(self) -> ConsumerGroupHeartbeatRequest:
        joins = self.epoch == 0
        full = joins or self.sends_all
        say_owned = full or self.owned != self.said_owned
        return ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms if full else -1,
            subscribed_topic_names=self.topics if full else None,
            subscribed_topic_regex=self.pattern if full else None,
            server_assignor=self.assignor if full else None,
            topic_partitions=_named(self.owned) if say_owned else None,
        )

    def beat(self, *, lost: bool = False) -> Answer | None:
        """
        Send a heartbeat; a client whose response is lost does not know its effect.
        """
        waiting = self.begin(lost=lost)
        answers: list[Answer | None] = []
        waiting.addCallback(answers.append)
        return answers[0]

    def begin(self, *, lost: bool = False) -> Deferred[Answer | None]:
        """
        Send a heartbeat whose response may arrive later.
        """
        request = self.request()
        asked: Deferred[Any] = maybeDeferred(self.cluster.ask, request)
        return asked.addCallbacks(self._answered, self._failed, (request, lost), {}, (lost,))

    def _failed(self, failure: Failure, lost: bool) -> None:
        self.sends_all = True
        error = failure.value
        if not isinstance(error, KafkaError):
            failure.raiseException()
        elif not lost:
            self.refused(error)

    def _answered(self, answer: Answer, request: ConsumerGroupHeartbeatRequest, lost: bool) -> Answer | None:
        self.heard_at = self.cluster.clock.seconds()
        if lost:
            self.sends_all = True
            return None
        self.sends_all = False
        self.said_owned = set(self.owned) if request.topic_partitions is not None else self.said_owned
        self.take(answer)
        return answer

    def take(self, answer: Answer) -> None:
        if answer.member_epoch < self.epoch:
            raise AssertionError("an epoch goes back")
        self.epoch = answer.member_epoch
        self.member_id = answer.member_id or self.member_id
        if answer.assignment is not None:
            self.target = {
                (topic.topic_id, index) for topic in answer.assignment.topic_partitions for index in topic.partitions
            }
        self.reconcile()

    def reconcile(self) -> None:
        """
        Revoke first and report it, then take over new partitions.
        """
        lost = self.owned - self.target
        if lost:
            if self.revokes:
                self.owned -= lost
            elif self.stuck_since is None:
                self.stuck_since = self.cluster.clock.seconds()
            return
        self.stuck_since = None
        self.owned |= self.target

    def refused(self, error: KafkaError) -> None:
        if error.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.fenced += 1
            self.epoch = 0
            self.drop()
        elif error.code in (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.gave_up = error.code
            self.drop()
        elif not error.code.retriable:
            raise error

    def drop(self) -> None:
        self.owned.clear()
        self.target.clear()
        self.said_owned = None
        self.stuck_since = None

    def leave(self, epoch: int = -1) -> None:
        self.drop()
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        self.cluster.ask(request)

    def owned_by_topic(self) -> dict[str, list[int]]:
        """
        Its partitions by topic name.
        """
        found: dict[str, list[int]] = {}
        for owned_id, index in sorted(self.owned):
            found.setdefault(self.cluster.view.topics_by_id[owned_id].name, []).append(index)
        return found


def _named(owned: set[tuple[Uuid, int]]) -> list[REQUEST_TOPIC]:
    by_topic: dict[Uuid, list[int]] = {}
    for owned_id, index in sorted(owned):
        by_topic.setdefault(owned_id, []).append(index)
    return [REQUEST_TOPIC(topic_id=owned_id, partitions=found) for owned_id, found in by_topic.items()]
