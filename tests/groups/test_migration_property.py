"""
Invariants of a group that members of both protocols join and leave, in any order.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kgateway.cluster.view import NewTopic
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import JoinRequest, JoinResult, LeavingMember, Protocols, SyncRequest, SyncResult
from kgateway.groups.consumer.classic_members import ClassicMembers, assignment_bytes, assignment_from
from kgateway.groups.consumer.group import Answer, Client, ConsumerGroup
from kgateway.groups.group import Group
from kgateway.groups.migration import Migration
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.messages.stored.group_metadata import GroupMetadataKey
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.groups.consumer.model import Cluster, Consumer, Log
from tests.serving import Serving

PARTITIONS = 5
SUBSCRIPTION = b"\0\1" + encode(ConsumerProtocolSubscription(topics=["t"], owned_partitions=[]), 1)
Face = ClassicGroup | ClassicMembers


class Coordinator(Cluster):
    """
    One group of either kind, which can be reloaded from its rows.
    """

    def __init__(self) -> None:
        self.serving = Serving(group_initial_rebalance_delay_ms=0)
        self.serving.broker.watch(self._look)
        self.log = Log()
        self.migration = Migration(self.serving.parts, self.become)
        self.clock = self.serving.clock
        self.denied = set()
        self.next_topic = 1
        self.serving.broker.create_topic(NewTopic("t", PARTITIONS))
        self.current: Group = self.migration.classic_group("g", self.log.write)

    def _look(self) -> None:
        self.view = self.serving.broker.view()

    def become(self, group: Group) -> None:
        self.current = group

    def reload(self) -> None:
        self.current.stop()
        rows = self.log.compacted()
        classic = not rows or isinstance(rows[0].key, GroupMetadataKey)
        make = self.migration.classic_group if classic else self.migration.consumer_group
        self.current = make("g", self.log.write)
        for row in rows:
            self.current.replay(row)
        self.current.loaded()

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> Answer | Deferred[Answer]:
        group = self.current
        if isinstance(group, ClassicGroup):
            if request.member_epoch:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)  # clients treat GROUP_ID_NOT_FOUND likewise
            if group.is_empty:
                self.log.write([row._replace(value=None) for row in group.rows()])
                group.stop()
                group = self.current = self.migration.consumer_group("g", self.log.write)
            else:
                group = self.migration.upgraded(group, self.log.write)
        assert isinstance(group, ConsumerGroup)
        return group.heartbeat(request, Client("client", "/127.0.0.1", lambda name: True))

    def face(self, *, joins: bool = False) -> Face:
        group = self.current
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                return ClassicMembers(group, self.serving.parts.settings)
            if not joins:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            self.log.write([row._replace(value=None) for row in list(group.rows())[::-1]])
            group.stop()
            group = self.current = self.migration.classic_group("g", self.log.write)
        assert isinstance(group, ClassicGroup)
        return group


class Classic:
    """
    A client of the classic protocol that revokes everything before it rejoins.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.member_id = ""
        self.generation: int | None = None
        self.owned: set[tuple[Uuid, int]] = set()
        self.waits = False

    def step(self) -> None:
        if self.waits:
            return
        if self.generation is None:
            self.join()
            return
        try:
            self.coordinator.face().heartbeat(self.member_id, None, self.generation)
        except KafkaError as error:
            self.refused(error)

    def join(self) -> None:
        self.owned.clear()
        self.waits = True
        asked = JoinRequest(
            member_id=self.member_id,
            client_id="classic",
            client_host="/127.0.0.1",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=Protocols([("range", SUBSCRIPTION)]),
            takes_member_id=False,
            can_skip_assignment=False,
        )
        joining: Deferred[Any] = maybeDeferred(self.ask_to_join, asked)
        joining.addCallback(self.joined).addErrback(self.failed)

    def joined(self, joined: JoinResult) -> Deferred[None]:
        self.member_id, self.generation = joined.member_id, joined.generation
        assignments = self.assign([member.member_id for member in joined.members])
        asked = SyncRequest(member_id=self.member_id, generation=joined.generation, assignments=assignments)
        syncing: Deferred[Any] = maybeDeferred(self.ask_to_sync, asked)
        return syncing.addCallback(self.synced)

    def ask_to_join(self, asked: JoinRequest) -> Any:
        return self.coordinator.face(joins=True).join(asked)

    def ask_to_sync(self, asked: SyncRequest) -> Any:
        return self.coordinator.face().sync(asked)

    def assign(self, member_ids: Sequence[str]) -> list[tuple[str, bytes]]:
        """
        As a leader, assign the partitions in turn.
        """
        [topic] = self.coordinator.view.topics.values()
        number = len(member_ids)
        return [
            (
                member_id,
                assignment_bytes(
                    {topic.id: frozenset(range(rank, PARTITIONS, number))} if rank < PARTITIONS else {},
                    self.coordinator.view,
                    1,
                ),
            )
            for rank, member_id in enumerate(member_ids)
        ]

    def synced(self, synced: SyncResult) -> None:
        self.waits = False
        read = assignment_from(synced.assignment, self.coordinator.view)
        self.owned = {(topic_id, index) for topic_id, found in read.items() for index in found}

    def failed(self, failure: Failure) -> None:
        self.waits = False
        error = failure.value
        if not isinstance(error, KafkaError):
            failure.raiseException()
        else:
            self.refused(error)

    def refused(self, error: KafkaError) -> None:
        if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif error.code not in (
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ):
            raise error
        self.generation = None
        self.owned.clear()

    def leave(self) -> None:
        if self.member_id:
            try:
                self.coordinator.face().leave([LeavingMember(self.member_id)])
            except KafkaError as error:
                if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                    raise


class Mixed(RuleBasedStateMachine):
    """
    Clients of both protocols in one group.
    """

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.classic: list[Classic] = []
        self.consumers: list[Consumer] = []
        self.count = 0

    @precondition(lambda self: len(self.classic) < 4)
    @rule()
    def classic_joins(self) -> None:
        client = Classic(self.coordinator)
        self.classic.append(client)
        client.step()
        self.coordinator.clock.advance(0)

    @precondition(lambda self: len(self.consumers) < 3)
    @rule()
    def consumer_joins(self) -> None:
        self.count += 1
        client = Consumer(self.coordinator, f"m{self.count}", ["t"])
        self.consumers.append(client)
        client.beat()

    @precondition(lambda self: self.classic)
    @rule(number=st.integers(0, 3))
    def classic_leaves(self, number: int) -> None:
        client = self.classic[number % len(self.classic)]
        if not client.waits:
            self.classic.remove(client)
            client.leave()

    @precondition(lambda self: self.consumers)
    @rule(number=st.integers(0, 2))
    def consumer_leaves(self, number: int) -> None:
        client = self.consumers.pop(number % len(self.consumers))
        try:
            client.leave()
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                raise

    @rule(number=st.integers(0, 6))
    def one_steps(self, number: int) -> None:
        steps: list[Callable[[], object]] = [client.step for client in self.classic]
        steps += [consumer.beat for consumer in self.consumers]
        if steps:
            steps[number % len(steps)]()

    @rule(rounds=st.integers(1, 5))
    def all_step(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.classic:
                client.step()
            for consumer in self.consumers:
                consumer.beat()
            self.coordinator.clock.advance(1)

    @rule()
    def restarts(self) -> None:
        self.coordinator.reload()

    @invariant()
    def each_partition_has_one_reader(self) -> None:
        owned = [part for client in self.classic for part in client.owned]
        owned += [part for consumer in self.consumers for part in consumer.owned]
        assert len(owned) == len(set(owned)), owned

    def teardown(self) -> None:
        """
        After the last change all partitions are read, and the group has the kind of its members.
        """
        for _ in range(20):
            self.all_step(5)
            self.each_partition_has_one_reader()
        owned = {part for client in self.classic for part in client.owned}
        owned |= {part for consumer in self.consumers for part in consumer.owned}
        if self.classic or self.consumers:
            assert len(owned) == PARTITIONS
            assert self.coordinator.current.state == "Stable"
            assert isinstance(self.coordinator.current, ConsumerGroup) == bool(self.consumers)


MixedTests = Mixed.TestCase
