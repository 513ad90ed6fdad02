"""
A coordinator of groups over a broker of any kind, and what was committed to it.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.view import NewTopic, Topic
from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.groups.coding import NEVER
from kgateway.groups.group import Group
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.groups.rows import Row
from kgateway.interfaces import IBroker
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.authorizer import AllowAll
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import ZERO, Uuid
from tests.broker.behaviour import START_MS, refusal, result

State = dict[str, dict[Place, int]]


def value(
    offset: int, committed_ms: int = START_MS, expires_ms: int = NEVER, topic_id: Uuid = ZERO
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset, metadata="", commit_timestamp=committed_ms, expire_timestamp=expires_ms, topic_id=topic_id
    )


class Coordinating:
    """
    A gateway as far as groups see it.
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
        A new coordinator over what the broker has.
        """
        self.parts = GatewayParts(self.broker, self._settings, AllowAll(), self.clock, self.now_ms)
        self.groups = self.parts.service(Groups)

    def again(self) -> None:
        """
        The coordinator stops, and another one begins.
        """
        self.parts.stop()
        self.start()
        self.load()

    def load(self) -> None:
        """
        Let all groups be there.
        """
        self.clock.pump([0] * 1000)

    def topic(self, name: str, partitions: int = 4) -> Topic:
        return result(self.broker.create_topic(NewTopic(name, partitions)))

    def commit(self, group_id: str, offset: int, topic: str = "t", partition: int = 0, **more: Any) -> None:
        """
        Commit for a consumer that is no member.
        """
        known: dict[str, Any] = {"committed_ms": self.now_ms(), "topic_id": self._id(topic)}
        committed = value(offset, **known | more)
        result(self.groups.simple(group_id).offsets.commit([(Place(topic, partition), committed)]))

    def with_member(self, group_id: str, subscription: bytes = b"") -> None:
        """
        Let there be a stable classic group of one member, as an earlier coordinator has left it.
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
        Let this be what is known of a classic group.
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
        All groups, and where they are.
        """
        found = [self.groups.get(group.group_id) for group in result(self.all())]
        return {held.group.group_id: {place: one.offset for place, one in held.offsets} for held in found}

    def all(self) -> Deferred[list[Group]]:
        return Deferred.fromCoroutine(self.groups.all())

    def refused(self, call: Callable[[], Any]) -> str:
        error: KafkaError = refusal(call)
        return error.code.name

    def _id(self, topic: str) -> Uuid:
        found = self.broker.view().topics.get(topic)
        return found.id if found else ZERO
