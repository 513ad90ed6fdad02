"""
Groups of the consumer protocol (KIP-848), with a partition of one topic for each of their members.

A member sends its next heartbeat as soon as all have the answer to the last, where a consumer would wait for the
interval that the server tells: so what is measured is the server. Where none has learned anything new, for a server
shares out at most once a second, one member of each group asks again after a short pause.
"""

from collections.abc import Sequence
from time import sleep
from uuid import uuid4

from bench.kafka.classic_groups import until_coordinated
from bench.kafka.multiplexed import Connection, Connections, Conversation
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid

_JOINING, _LEAVING = 0, -1
_REBALANCE_MS = 300_000
_NOTHING_NEW_S = 0.02
_BETWEEN_TARGETS_S = 1.0  # Kafka's group.consumer.assignment.interval.ms, which is kgateway's too


class _Member:
    def __init__(self, group_id: str, topic: str, connection: Connection) -> None:
        self.group_id = group_id
        self.topic = topic
        self.connection = connection
        self.id = str(uuid4())
        self.epoch = _JOINING
        self.owned: dict[Uuid, list[int]] = {}
        self._said: dict[Uuid, list[int]] = {}  # that it owns

    @property
    def partitions(self) -> list[int]:
        return [index for partitions in self.owned.values() for index in partitions]

    def join(self) -> Conversation:
        """
        Send a heartbeat with all fields.
        """
        self.epoch, self.owned, self._said = _JOINING, {}, {}
        request = self._heartbeat()
        request.rebalance_timeout_ms = _REBALANCE_MS
        request.subscribed_topic_names = [self.topic]
        request.topic_partitions = []
        yield from self._ask(request)

    def beat(self) -> Conversation:
        """
        Send a heartbeat, with the owned partitions if they have changed.
        """
        request = self._heartbeat()
        if self._said != self.owned:
            self._said = self.owned
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in self.owned.items()
            ]
        yield from self._ask(request)

    def leave(self) -> Conversation:
        self.epoch = _LEAVING
        yield from self._ask(self._heartbeat())

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=self.group_id, member_id=self.id, member_epoch=self.epoch)

    def _ask(self, request: ConsumerGroupHeartbeatRequest) -> Conversation:
        answer = yield request
        assert not answer.error_code, f"{ErrorCode(answer.error_code).name}: {answer.error_message}"
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}


class ConsumerGroups:
    name = "KIP-848"
    pause_s = _BETWEEN_TARGETS_S + 0.1  # between two changes, so that they do not wait for the time of the next target

    def __init__(self, connections: Connections, topic: str, count: int, size: int) -> None:
        self._connections = connections
        self._size = size
        self._groups = [
            [_Member(f"{self.name}-{number}", topic, connections.connect()) for _ in range(size)]
            for number in range(count)
        ]
        connections.hold((members[0].connection, until_coordinated(members[0].group_id)) for members in self._groups)

    def form(self) -> None:
        """
        Let all members join the empty groups.
        """
        self._connections.hold([(member.connection, member.join()) for member in self._all])
        self._settle()

    def replace_one(self) -> None:
        """
        Let a member of each group leave and join again, until all have their assignment.
        """
        chosen = [members[-1] for members in self._groups]
        self._connections.hold([(member.connection, member.leave()) for member in chosen])
        self._connections.hold([(member.connection, member.join()) for member in chosen])
        self._settle()

    def dissolve(self) -> None:
        self._connections.hold([(member.connection, member.leave()) for member in self._all])

    def check(self) -> None:
        """
        Check that each partition is assigned to exactly one member.
        """
        for members in self._groups:
            assert sorted(index for member in members for index in member.partitions) == list(range(self._size))
            assert len({member.epoch for member in members}) == 1

    @property
    def _all(self) -> list[_Member]:
        return [member for members in self._groups for member in members]

    def _settle(self) -> None:
        """
        Send heartbeats until all members are in the epoch of the newest, and have one partition each.
        """
        waiting: Sequence[_Member] = self._all
        while waiting:
            before = [(member.epoch, member.owned) for member in waiting]
            self._connections.hold([(member.connection, member.beat()) for member in waiting])
            nothing_new = before == [(member.epoch, member.owned) for member in waiting]
            unsettled = [found for members in self._groups if (found := _unsettled(members))]
            if nothing_new:
                sleep(_NOTHING_NEW_S)
                waiting = [members[-1] for members in unsettled]
            else:
                waiting = [member for members in unsettled for member in members]


def _unsettled(members: Sequence[_Member]) -> list[_Member]:
    newest = max(member.epoch for member in members)
    return [member for member in members if member.epoch != newest or len(member.partitions) != 1]
