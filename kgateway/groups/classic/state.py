"""
What is true of a classic group, and how it is kept: a row is written whole, after each change that is to last.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from kgateway.groups.classic.member import Member
from kgateway.groups.classic.members import Members
from kgateway.groups.classic.protocols import Protocols
from kgateway.groups.classic.session import Session
from kgateway.groups.rows import Row
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata

CONSUMER = "consumer"  # the protocol type whose metadata can be read
_UNKNOWN = -1


class Phase(Enum):
    """
    What a group is doing, as Kafka's tools call it.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"  # members join
    COMPLETING_REBALANCE = "CompletingRebalance"  # the leader assigns, and members sync
    STABLE = "Stable"
    DEAD = "Dead"  # it is coordinated here no more


class State:
    """
    A group as it is now.
    """

    def __init__(self, group_id: str, now_ms: Callable[[], int]) -> None:
        self.group_id = group_id
        self.phase = Phase.EMPTY
        self.since_ms: int | None = now_ms()  # by the wall clock, when the phase began
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.members = Members()
        self._now_ms = now_ms

    def enter(self, phase: Phase) -> None:
        """
        The phase begins.
        """
        self.phase, self.since_ms = phase, self._now_ms()

    def begin_generation(self) -> None:
        """
        Those who are members now are in a generation together; nobody has synced.
        """
        members = self.members
        self.generation += 1
        self.protocol = members.vote() if members else None
        members.unsynced = {member.id for member in members}
        self.enter(Phase.COMPLETING_REBALANCE if members else Phase.EMPTY)

    def reads(self, topic: str) -> bool:
        """
        Whether a member is subscribed to the topic, or may be for all we can tell.
        """
        subscribed = (member.protocols.topics if self.protocol_type == CONSUMER else None for member in self.members)
        return any(topics is None or topic in topics for topics in subscribed)

    def row(self, assignments: Mapping[str, bytes]) -> Row:
        """
        All of it, with these assignments by member id.
        """
        return Row(
            GroupMetadataKey(group=self.group_id),
            GroupMetadataValue(
                protocol_type=self.protocol_type,
                generation=self.generation,
                protocol=self.protocol,
                leader=self.members.leader,
                current_state_timestamp=_UNKNOWN if self.since_ms is None else self.since_ms,
                members=list(self._stored(assignments)),
            ),
        )

    def restore(self, stored: GroupMetadataValue, session: Callable[[str], Session]) -> None:
        """
        Be what was written. Of the protocols each member spoke, the chosen one alone was.
        """
        self.generation, self.protocol, self.protocol_type = stored.generation, stored.protocol, stored.protocol_type
        self.since_ms = None if stored.current_state_timestamp == _UNKNOWN else stored.current_state_timestamp
        for member in stored.members:
            self.members.add(_restored(member, stored.protocol or "", session(member.member_id)))
        if stored.leader is not None and stored.leader in self.members:
            self.members.leader = stored.leader
        self.phase = Phase.STABLE if self.members else Phase.EMPTY

    def _stored(self, assignments: Mapping[str, bytes]) -> Iterator[MemberMetadata]:
        for member in self.members:
            yield MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols.metadata(self.protocol or ""),
                assignment=assignments.get(member.id, b""),
            )


def _restored(stored: MemberMetadata, protocol: str, session: Session) -> Member:
    unknown = stored.rebalance_timeout == _UNKNOWN
    return Member(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=stored.session_timeout if unknown else stored.rebalance_timeout,
        protocols=Protocols([(protocol, stored.subscription)]),
        session=session,
        assignment=stored.assignment,
    )
