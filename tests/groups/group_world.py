"""
A group coordinator over any broker, and its committed offsets.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.view import NewTopic, Topic
from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import Group
from kgateway.groups.records import NEVER, Row
from kgateway.interfaces import IBroker
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.authorizer import AllowAll
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import ZERO, Uuid
from tests.broker.behaviour import START_MS, refusal, result

State = dict[str, dict[TopicPartition, int]]


def value(
    offset: int, committed_ms: int = START_MS, expires_ms: int = NEVER, topic_id: Uuid = ZERO
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset, metadata="", commit_timestamp=committed_ms, expire_timestamp=expires_ms, topic_id=topic_id
    )


class GroupWorld:
    """
    The parts of a gateway that groups need.
    """

    def __init__(self, make: Callable[[Callable[[], int]], IBroker] | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self._settings = Settings(**settings)
        self.broker = make(self.now_ms) if make else MemoryBroker(now_ms=self.now_ms)
        self.start()

    def now_ms(self) -> int:
        return START_MS + round(self.clock.seconds() * 1000)

    def start(self) -> None:
        """
        Start a new coordinator over the state logs of the broker.
        """
        self.parts = GatewayParts(self.broker, self._settings, AllowAll(), self.clock, self.now_ms)
        self.groups = self.parts.service(GroupCoordinator)

    def again(self) -> None:
        """
        Stop the coordinator and start another one.
        """
        self.parts.stop()
        self.start()
        self.load()

    def load(self) -> None:
        self.clock.pump([0] * 1000)

    def topic(self, name: str, partitions: int = 4) -> Topic:
        return result(self.broker.create_topic(NewTopic(name, partitions)))

    def commit(self, group_id: str, offset: int, topic: str = "t", partition: int = 0, **more: Any) -> None:
        """
        Commit as a client outside the group.
        """
        known: dict[str, Any] = {"committed_ms": self.now_ms(), "topic_id": self._id(topic)}
        committed = value(offset, **known | more)
        result(self.groups.entry_or_new(group_id).offsets.commit([(TopicPartition(topic, partition), committed)]))

    def with_member(self, group_id: str, subscription: bytes = b"") -> None:
        """
        Write a stable classic group of one member, as an earlier coordinator would.
        """
        member = MemberMetadata(
            member_id="m",
            client_id="",
            client_host="",
            session_timeout=300_000,
            subscription=subscription,
            assignment=b"",
        )
        self.write_group(group_id, protocol="range", leader="m", members=[member])

    def write_group(self, group_id: str, **more: Any) -> None:
        """
        Write the state of a classic group.
        """
        known: dict[str, Any] = {
            "protocol": None,
            "leader": None,
            "members": [],
            "current_state_timestamp": self.now_ms(),
        }
        row = Row(
            GroupMetadataKey(group=group_id),
            GroupMetadataValue(protocol_type="consumer", generation=1, **known | more),
        )
        self.groups.write(group_id)([row])
        self.again()

    def state(self) -> State:
        """
        All groups with their offsets.
        """
        found = [self.groups.entry(group.group_id) for group in result(self.all())]
        return {entry.group.group_id: {place: one.offset for place, one in entry.offsets} for entry in found}

    def all(self) -> Deferred[list[Group]]:
        return Deferred.fromCoroutine(self.groups.all())

    def refused(self, call: Callable[[], Any]) -> str:
        error: KafkaError = refusal(call)
        return error.code.name

    def _id(self, topic: str) -> Uuid:
        found = self.broker.view().topics.get(topic)
        return found.id if found else ZERO
