"""
Groups of the classic protocol, with a partition of one topic for each of their members.

A member that is told of a rebalance joins and asks for its assignment, until it is in a generation with all the others.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

from bench.kafka.multiplexed import Connection, Connections, Conversation
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.messages.heartbeat import HeartbeatRequest
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.leave_group import LeaveGroupRequest
from kgateway.messages.sync_group import SyncGroupRequest
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode
from kgateway.wire.schema import Message

_TYPE = "consumer"
_ASSIGNOR = "range"
_SESSION_MS = 600_000
_REBALANCE_MS = 300_000
_VERSION = 3  # of what consumers say inside


def until_coordinated(group_id: str) -> Conversation:
    """
    Retry while the server loads the group. Kafka answers heartbeats without an error meanwhile.
    """
    stranger = HeartbeatRequest(group_id=group_id, generation_id=0, member_id="stranger")
    while (yield stranger).error_code != ErrorCode.UNKNOWN_MEMBER_ID:
        pass


class Group:
    def __init__(self, group_id: str, topic: str, size: int) -> None:
        self.id = group_id
        self.topic = topic
        self.size = size
        self.complete_in = -1  # the generation that all are in
        said = ConsumerProtocolSubscription(topics=[topic], owned_partitions=[])
        self.protocols = [JoinGroupRequest.Protocol(name=_ASSIGNOR, metadata=_inside(said))]

    def shared_out(self, joined: JoinGroupResponse) -> list[SyncGroupRequest.Assignment]:
        if len(joined.members) == self.size:
            self.complete_in = joined.generation_id
        return [
            SyncGroupRequest.Assignment(member_id=member.member_id, assignment=_part(self.topic, index))
            for index, member in enumerate(joined.members)
        ]


class ClassicMember:
    def __init__(self, group: Group, connection: Connection) -> None:
        self.group = group
        self.connection = connection
        self.id = ""
        self.generation = -1
        self.assignment = b""

    def enter(self) -> Conversation:
        """
        Join until all members are in one generation.
        """
        while True:
            joined = yield from self._join()
            is_leader = joined.leader == self.id
            synced = yield SyncGroupRequest(
                group_id=self.group.id,
                generation_id=self.generation,
                member_id=self.id,
                protocol_type=_TYPE,
                protocol_name=_ASSIGNOR,
                assignments=self.group.shared_out(joined) if is_leader else [],
            )
            if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            assert not synced.error_code, ErrorCode(synced.error_code).name
            self.assignment = bytes(synced.assignment)
            if self.generation == self.group.complete_in:
                return
            yield from self._hear_of_rebalance()

    def enter_again(self) -> Conversation:
        """
        Rejoin as soon as a heartbeat reports a rebalance.
        """
        yield from self._hear_of_rebalance()
        yield from self.enter()

    def leave(self) -> Conversation:
        answer = yield LeaveGroupRequest(group_id=self.group.id, members=[LeaveGroupRequest.Member(member_id=self.id)])
        assert not answer.error_code, ErrorCode(answer.error_code).name
        self.id = ""

    def _join(self) -> Generator[Message, Any, JoinGroupResponse]:
        answer: JoinGroupResponse = yield self._join_request()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            answer = yield self._join_request()
        assert not answer.error_code, ErrorCode(answer.error_code).name
        self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group.id,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self.id,
            protocol_type=_TYPE,
            protocols=self.group.protocols,
        )

    def _hear_of_rebalance(self) -> Conversation:
        """
        Send heartbeats until one reports a rebalance.
        """
        alive = HeartbeatRequest(group_id=self.group.id, generation_id=self.generation, member_id=self.id)
        while not (answer := (yield alive)).error_code:
            pass
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode(answer.error_code).name


class ClassicGroups:
    name = "classic"
    pause_s = 0.0  # between two changes

    def __init__(self, connections: Connections, topic: str, count: int, size: int) -> None:
        self._connections = connections
        groups = [Group(f"{self.name}-{number}", topic, size) for number in range(count)]
        self._members = [[ClassicMember(group, connections.connect()) for _ in range(size)] for group in groups]
        connections.hold((members[0].connection, until_coordinated(members[0].group.id)) for members in self._members)

    def form(self) -> None:
        """
        Let all members join the empty groups.
        """
        self._hold((member, member.enter()) for members in self._members for member in members)

    def replace_one(self) -> None:
        """
        Let a member of each group leave and join again, until all have their assignment.
        """
        self._hold((members[-1], members[-1].leave()) for members in self._members)
        self._hold(
            (member, member.enter() if member is members[-1] else member.enter_again())
            for members in self._members
            for member in members
        )

    def dissolve(self) -> None:
        self._hold((member, member.leave()) for members in self._members for member in members)

    def generations(self) -> list[int]:
        """
        The generations in which the groups are complete.
        """
        return [members[0].group.complete_in for members in self._members]

    def check(self) -> None:
        """
        Check that each partition is assigned to exactly one member.
        """
        for members, generation in zip(self._members, self.generations(), strict=True):
            given = Counter(member.assignment for member in members)
            assert given == Counter(_part(members[0].group.topic, index) for index in range(len(members)))
            assert {member.generation for member in members} == {generation}

    def _hold(self, conversations: Iterable[tuple[ClassicMember, Conversation]]) -> None:
        self._connections.hold([(member.connection, conversation) for member, conversation in conversations])


def _part(topic: str, index: int) -> bytes:
    partition = ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=[index])
    return _inside(ConsumerProtocolAssignment(assigned_partitions=[partition]))


def _inside(said: Message) -> bytes:
    return _VERSION.to_bytes(2, "big") + encode(said, _VERSION)
