"""
A member of a group of the classic protocol, which all servers know: it joins, sends heartbeats, commits and leaves.

No thread sends heartbeats: the caller calls `beat` again and again, between reading and writing.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from kgateway.client.cluster import Cluster, partitions_of, refuse
from kgateway.client.connection import Connection
from kgateway.client.group_offsets import Membership, commit_offsets
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgateway.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.codec import decoder, encode
from kgateway.wire.errors import ErrorCode, KafkaError

SESSION_MS = 45_000
HEARTBEAT_S = 3.0
_REBALANCE_MS = 60_000
_JOIN_PATIENCE_S = 330.0  # members with other clients may have five minutes to come back
_PROTOCOL, _TYPE = "range", "consumer"
_VERSION = (0).to_bytes(2, "big")  # of subscriptions and assignments
_EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
_ANEW = {ErrorCode.REBALANCE_IN_PROGRESS, *_EXPELLED}
_AssignedTopic = ConsumerProtocolAssignment.AssignedPartition


def range_assignment(
    subscriptions: Mapping[str, list[str]], partitions: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    """
    Assign partitions topic by topic, in runs, as the `range` assignor of all clients does. The arguments are the topics
    of each member and the number of partitions of each topic.
    """
    shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in subscriptions}
    for topic, count in partitions.items():
        readers = sorted(member_id for member_id, topics in subscriptions.items() if topic in topics)
        if not readers:
            continue
        each, more = divmod(count, len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            stop = start + each + (place < more)
            if stop > start:
                shares[member_id][topic] = [*range(start, stop)]
            start = stop
    return shares


class Member:
    def __init__(
        self, cluster: Cluster, group_id: str, topics: Iterable[str], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._topics = [*topics]
        self._seconds = seconds
        self._as = Membership()
        self._beat_at = 0.0

    def join(self) -> list[TopicPartition]:
        """
        Join the group or its next generation; returns the assigned partitions.
        """
        while True:
            try:
                assigned = self._cluster.retry(self._join_once, reconnect=True)
            except KafkaError as error:
                if error.code not in {ErrorCode.MEMBER_ID_REQUIRED, *_ANEW}:
                    raise
                continue
            self._beat_at = self._seconds() + HEARTBEAT_S
            return assigned

    def beat(self) -> bool:
        """
        Send a heartbeat if one is due; returns False if the member must join again.
        """
        if self._seconds() < self._beat_at:
            return True
        self._beat_at = self._seconds() + HEARTBEAT_S
        return self._still_in(self._heartbeat)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """
        Commit positions; returns False if another member owns the partitions by now.
        """
        if not offsets:
            return True
        work = partial(commit_offsets, self._cluster, self._group_id, offsets, self._as)
        return self._still_in(work)

    def leave(self) -> None:
        """
        Leave the group, so that others get the partitions at once.
        """
        if not self._as.member_id:
            return
        kind = LeaveGroupRequest.Member
        request = LeaveGroupRequest(
            group_id=self._group_id, member_id=self._as.member_id, members=[kind(member_id=self._as.member_id)]
        )
        self._coordinator().ask(request, LeaveGroupResponse)

    def _coordinator(self) -> Connection:
        return self._cluster.connection(self._cluster.coordinator(self._group_id))

    def _still_in(self, work: Callable[[], None]) -> bool:
        try:
            self._cluster.retry(work, reconnect=True)
        except KafkaError as error:
            if error.code not in _ANEW:
                raise
            if error.code in _EXPELLED:
                self._as = Membership()
            return False
        return True

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._as.generation, member_id=self._as.member_id
        )
        refuse(self._coordinator().ask(request, HeartbeatResponse).error_code)

    def _join_once(self) -> list[TopicPartition]:
        connection = self._coordinator()
        subscription = encode(ConsumerProtocolSubscription(topics=self._topics), 0)
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._as.member_id,
            protocol_type=_TYPE,
            protocols=[JoinGroupRequest.Protocol(name=_PROTOCOL, metadata=_VERSION + subscription)],
        )
        joined = connection.ask(request, JoinGroupResponse, patience_s=_JOIN_PATIENCE_S)
        if joined.error_code in _EXPELLED:
            self._as = Membership()
        elif joined.member_id:
            self._as = Membership(joined.member_id, joined.generation_id)
        refuse(joined.error_code)
        return self._sync(connection, joined)

    def _sync(self, connection: Connection, joined: JoinGroupResponse) -> list[TopicPartition]:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=_TYPE,
            protocol_name=_PROTOCOL,
            assignments=self._assignments(joined) if joined.leader == joined.member_id else [],
        )
        synced = connection.ask(request, SyncGroupResponse, patience_s=_JOIN_PATIENCE_S)
        if synced.error_code in _EXPELLED:
            self._as = Membership()
        refuse(synced.error_code)
        if not synced.assignment:
            return []
        assignment, _ = decoder(ConsumerProtocolAssignment, 0)(synced.assignment, len(_VERSION))
        return [
            TopicPartition(part.topic, index) for part in assignment.assigned_partitions for index in part.partitions
        ]

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequest.Assignment]:
        """
        The assignment of each member, which only the leader of the group sends.
        """
        read = decoder(ConsumerProtocolSubscription, 0)
        subscriptions = {one.member_id: read(one.metadata, len(_VERSION))[0].topics for one in joined.members}
        topics = sorted({topic for wanted in subscriptions.values() for topic in wanted})
        known = partitions_of(self._cluster, topics)
        shares = range_assignment(subscriptions, {topic: len(partitions) for topic, partitions in known.items()})
        return [
            SyncGroupRequest.Assignment(member_id=member_id, assignment=_VERSION + _encoded(share))
            for member_id, share in shares.items()
        ]


def _encoded(share: Mapping[str, list[int]]) -> bytes:
    parts = [_AssignedTopic(topic=topic, partitions=indexes) for topic, indexes in share.items()]
    return encode(ConsumerProtocolAssignment(assigned_partitions=parts), 0)
