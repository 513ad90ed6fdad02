"""
Conversion of groups between the protocols, and groups with members of both.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic, Topic
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import (
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberIdRequired,
    Protocols,
    SyncRequest,
)
from kgateway.groups.consumer.classic_members import ClassicMembers, assignment_bytes, assignment_from
from kgateway.groups.consumer.group import Answer, Client, ConsumerGroup
from kgateway.groups.group import Group
from kgateway.groups.migration import Migration
from kgateway.groups.records import Row
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.messages.stored.group_metadata import GroupMetadataKey
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer.model import Log
from tests.serving import Serving

OWNED = ConsumerProtocolSubscription.PartitionBase
FAILED = KafkaError(ErrorCode.NOT_COORDINATOR, "the log is elsewhere")


def subscription(topics: Sequence[str], owned: dict[str, list[int]] | None = None) -> bytes:
    said = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[OWNED(topic=name, partitions=partitions) for name, partitions in (owned or {}).items()],
    )
    return b"\0\1" + encode(said, 1)


class MigrationTestCase(SynchronousTestCase):
    settings: dict[str, Any] = {}

    def setUp(self) -> None:
        self.serving = Serving(group_initial_rebalance_delay_ms=0, **self.settings)
        self.topic: Topic = self.successResultOf(self.serving.broker.create_topic(NewTopic("t", 4)))
        self.log = Log()
        self.migration = Migration(self.serving.parts, self.become)
        self.group: Group = self.migration.classic_group("g", self.log.write)
        self.became: list[Group] = []

    def become(self, group: Group) -> None:
        self.group = group
        self.became.append(group)

    def asked(self, member_id: str = "", owned: dict[str, list[int]] | None = None, **more: Any) -> JoinRequest:
        values: dict[str, Any] = {
            "member_id": member_id,
            "client_id": "classic",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": Protocols([("range", subscription(["t"], owned)), ("other", subscription(["t"], owned))]),
            "takes_member_id": False,
            "can_skip_assignment": True,
        }
        return JoinRequest(**{**values, **more})

    def classic(self) -> ClassicGroup | ClassicMembers:
        if isinstance(self.group, ConsumerGroup):
            return ClassicMembers(self.group, self.serving.parts.settings)
        assert isinstance(self.group, ClassicGroup)
        return self.group

    def join(self, asked: JoinRequest) -> JoinResult:
        joined = self.classic().join(asked)
        if isinstance(joined, Deferred):
            self.serving.clock.advance(0)
            joined = self.successResultOf(joined)
        return joined

    def sync(self, joined: JoinResult, **more: Any) -> dict[str, list[int]]:
        synced = self.classic().sync(SyncRequest(member_id=joined.member_id, generation=joined.generation, **more))
        if isinstance(synced, Deferred):
            synced = self.successResultOf(synced)
        view = self.serving.broker.view()
        read = assignment_from(synced.assignment, view)
        return {view.topics_by_id[topic_id].name: sorted(found) for topic_id, found in read.items()}

    def classic_member(self, **more: Any) -> JoinResult:
        """
        The one member of a stable classic group, which reads all partitions.
        """
        joined = self.join(self.asked(**more))
        view = self.serving.broker.view()
        all_of_it = assignment_bytes({self.topic.id: frozenset(range(4))}, view, 1)
        assert self.sync(joined, assignments=[(joined.member_id, all_of_it)]) == {"t": [0, 1, 2, 3]}
        return joined

    def beat(self, member_id: str, epoch: int, **more: Any) -> Answer:
        values: dict[str, Any] = {"group_id": "g", "member_id": member_id, "member_epoch": epoch}
        if epoch == 0:
            values |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
        request = ConsumerGroupHeartbeatRequest(**{**values, **more})
        group = self.group
        if isinstance(group, ClassicGroup):
            group = self.migration.upgraded(group, self.log.write)
        assert isinstance(group, ConsumerGroup)
        answer = group.heartbeat(request, Client("client", "/127.0.0.1", lambda name: True))
        assert isinstance(answer, Answer)
        return answer

    def partitions(self, answer: Answer) -> list[int] | None:
        if answer.assignment is None:
            return None
        return [index for part in answer.assignment.topic_partitions for index in part.partitions]

    def assert_refused(self, code: ErrorCode, ask: Any, *arguments: Any) -> None:
        with pytest.raises(KafkaError) as raised:
            ask(*arguments)
        assert raised.value.code is code

    def mixed(self, **more: Any) -> JoinResult:
        """
        A classic member, in its generation, that shares the topic with m2 of the consumer protocol.
        """
        member = self.classic_member(**more)
        self.beat("m2", 0)
        member = self.join(self.asked(member.member_id, {"t": [0, 1]}, **more))
        self.sync(member)
        self.beat("m2", 2)
        return member


class UpgradeTests(MigrationTestCase):
    def test_the_first_consumer_converts_the_group(self) -> None:
        """
        One batch has the conversion and the join; classic members keep their partitions until they have revoked them.
        """
        member = self.classic_member()
        written = len(self.log.rows)
        batches: list[Sequence[Row]] = []
        write = self.log.write

        def noted(rows: Sequence[Row]) -> Deferred[None] | None:
            batches.append(rows)
            return write(rows)

        self.patch(self.log, "write", noted)
        answer = self.beat("m2", 0)
        [batch] = batches
        assert batch[0] == Row(GroupMetadataKey(group="g"), None)
        assert len(self.log.rows) == written + len(batch)
        assert (answer.member_epoch, self.partitions(answer)) == (2, [])
        assert isinstance(self.group, ConsumerGroup)
        assert [(one.member_id, one.member_type) for one in self.group.describe().members] == [
            (member.member_id, 0),
            ("m2", 1),
        ]

    def test_partitions_move_to_the_consumer(self) -> None:
        """
        The classic member is told to rejoin, which revokes its partitions.
        """
        member = self.classic_member()
        self.beat("m2", 0)
        beat = self.classic().heartbeat
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, beat, member.member_id, None, member.generation)
        again = self.join(self.asked(member.member_id, {"t": [0, 1, 2, 3]}))  # a cooperative member still owns them
        assert self.sync(again) == {"t": [0, 1]}
        assert self.partitions(self.beat("m2", 2)) is None
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, beat, member.member_id, None, again.generation)
        again = self.join(self.asked(member.member_id, {"t": [0, 1]}))
        assert (again.generation, self.sync(again)) == (2, {"t": [0, 1]})
        self.classic().heartbeat(member.member_id, None, 2)
        assert self.partitions(self.beat("m2", 2)) == [2, 3]
        assert self.group.state == "Stable"

    def test_an_eager_member_rejoins_once(self) -> None:
        """
        It revokes everything before it rejoins.
        """
        member = self.classic_member()
        self.beat("m2", 0)
        again = self.join(self.asked(member.member_id))
        assert (again.generation, self.sync(again)) == (2, {"t": [0, 1]})

    def test_waiting_members_are_told_to_rejoin(self) -> None:
        """
        They wait for a rebalance of the classic group.
        """
        member = self.classic_member()
        waiting = self.classic().join(self.asked("", instance_id=None, takes_member_id=False))
        self.beat("m2", 0)
        assert isinstance(waiting, Deferred)
        assert self.failureResultOf(waiting, KafkaError).value.code is ErrorCode.REBALANCE_IN_PROGRESS
        assert isinstance(self.group, ConsumerGroup)
        assert member.member_id in {one.member_id for one in self.group.describe().members}

    def test_a_refused_join_converts_nothing(self) -> None:
        member = self.classic_member()
        self.assert_refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION, lambda: self.beat("m2", 0, subscribed_topic_regex="a(")
        )
        self.log.refusal = FAILED
        self.assert_refused(ErrorCode.NOT_COORDINATOR, self.beat, "m2", 0)
        assert self.became == []
        self.classic().heartbeat(member.member_id, None, member.generation)

    def test_a_conversion_that_is_not_committed_is_undone(self) -> None:
        member = self.classic_member()
        self.log.slow = True
        upgraded = self.migration.upgraded(self.group, self.log.write)  # type: ignore[arg-type]
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m2", member_epoch=0, subscribed_topic_names=["t"], topic_partitions=[]
        )
        answer = upgraded.heartbeat(request, Client("client", "/127.0.0.1", lambda name: True))
        assert self.group is upgraded
        self.log.slow = False
        self.log.settle(FAILED)
        assert isinstance(answer, Deferred)
        self.failureResultOf(answer, KafkaError)
        assert isinstance(self.group, ClassicGroup)
        self.classic().heartbeat(member.member_id, None, member.generation)

    def test_session_timeouts_are_kept(self) -> None:
        """
        A classic member keeps its own in either kind of group.
        """
        self.classic_member(session_timeout_ms=10_000)
        self.beat("m2", 0)
        self.serving.clock.advance(10)
        assert isinstance(self.group, ConsumerGroup)
        assert [one.member_id for one in self.group.describe().members] == ["m2"]

    def test_other_members_are_not_converted(self) -> None:
        """
        They are no consumers, or their metadata would be lost.
        """
        self.join(self.asked(protocol_type="connect"))
        self.assert_refused(ErrorCode.GROUP_ID_NOT_FOUND, self.beat, "m2", 0)
        assert self.became == []

    def test_groups_with_assignor_data_are_not_converted(self) -> None:
        """
        The server could not make the data of the members' own assignor.
        """
        joined = self.join(self.asked())
        with_data = assignment_bytes({}, self.serving.broker.view(), 1)[:-4] + b"\0\0\0\1x"
        self.classic().sync(
            SyncRequest(
                member_id=joined.member_id,
                generation=joined.generation,
                assignments=[(joined.member_id, with_data)],
            )
        )
        self.assert_refused(ErrorCode.GROUP_ID_NOT_FOUND, self.beat, "m2", 0)

    def test_mixed_groups_continue_after_a_restart(self) -> None:
        member = self.mixed()
        assert isinstance(self.group, ConsumerGroup)
        before = sorted(map(repr, self.group.rows()))
        self.reload()
        assert sorted(map(repr, self.group.rows())) == before
        self.classic().heartbeat(member.member_id, None, member.generation)
        assert self.beat("m2", 2).member_epoch == 2

    def reload(self) -> None:
        self.group.stop()
        again = self.migration.consumer_group("g", self.log.write)
        for row in self.log.compacted():
            again.replay(row)
        again.loaded()
        self.group = again

    def test_a_restored_classic_member_is_in_its_epoch(self) -> None:
        """
        It is told to rejoin, and is then in the next one.
        """
        member = self.mixed().member_id
        self.serving.clock.advance(1)
        self.beat("m3", 0, subscribed_topic_names=["u"])
        self.reload()
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.classic().heartbeat, member, None, 2)
        assert self.join(self.asked(member, {"t": [0, 1]})).generation == 3
        self.reload()
        self.classic().heartbeat(member, None, 3)

    def test_a_member_that_returns_to_the_classic_protocol(self) -> None:
        """
        It is restored in the epoch that it reached by the other one.
        """
        self.mixed()
        self.serving.clock.advance(1)
        self.beat("m3", 0, subscribed_topic_names=["u"])
        assert self.beat("m2", 2).member_epoch == 3
        assert self.join(self.asked("m2", {"t": [2, 3]})).generation == 3
        self.reload()
        self.classic().heartbeat("m2", None, 3)


class ForbiddenUpgradeTests(MigrationTestCase):
    settings = {"group_consumer_migration_policy": "downgrade"}

    def test_the_policy_may_forbid_upgrades(self) -> None:
        """
        The group with members stays classic.
        """
        self.classic_member()
        with pytest.raises(KafkaError, match="policy is downgrade") as raised:
            self.beat("m2", 0)
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND


class FullUpgradeTests(MigrationTestCase):
    settings = {"group_consumer_max_size": 1}

    def test_a_full_group_takes_no_consumer(self) -> None:
        self.classic_member()
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.beat, "m2", 0)
        assert self.became == []

    def test_an_oversized_group_is_not_converted(self) -> None:
        """
        This holds even if one of its members asks.
        """
        member = self.classic_member()
        self.classic().join(self.asked())
        for member_id in ("m2", member.member_id):
            self.assert_refused(ErrorCode.GROUP_ID_NOT_FOUND, self.beat, member_id, 0)
        assert self.became == []


class DowngradeTests(MigrationTestCase):
    def test_the_last_consumer_that_leaves_converts_the_group(self) -> None:
        """
        The classic group rebalances.
        """
        member = self.mixed()
        answer = self.beat("m2", -1)
        assert answer.member_epoch == -1
        assert isinstance(self.group, ClassicGroup)
        assert (self.group.state, self.group.generation) == ("PreparingRebalance", 2)
        assert [type(row.key) for row in self.log.compacted()] == [GroupMetadataKey]
        joined = self.join(self.asked(member.member_id))
        assert (joined.generation, joined.leader) == (3, member.member_id)
        self.serving.clock.advance(100)
        assert [type(row.key) for row in self.log.compacted()] == [GroupMetadataKey]

    def test_a_converted_group_rebalances_after_a_restart(self) -> None:
        """
        Otherwise nobody would read the partitions of the last consumer.
        """
        member = self.mixed()
        self.beat("m2", -1)
        self.group.stop()
        again = self.migration.classic_group("g", self.log.write)
        for row in self.log.compacted():
            again.replay(row)
        again.loaded()
        self.group = again
        assert (again.state, again.generation) == ("PreparingRebalance", 2)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, again.heartbeat, member.member_id, None, 2)
        joined = self.join(self.asked(member.member_id))
        assert (joined.generation, joined.leader) == (3, member.member_id)

    def test_the_last_consumer_that_expires_converts_the_group(self) -> None:
        member = self.mixed()
        for _ in range(9):
            self.serving.clock.advance(5)
            if isinstance(self.group, ConsumerGroup):
                self.classic().heartbeat(member.member_id, None, member.generation)
        assert isinstance(self.group, ClassicGroup)

    def test_groups_with_a_consumer_are_not_converted(self) -> None:
        """
        Neither are groups without any members.
        """
        member = self.mixed()
        self.beat("m3", 0)
        self.beat("m3", -1)
        assert isinstance(self.group, ConsumerGroup)
        assert self.classic().leave([LeavingMember(member.member_id)]) == [ErrorCode.NONE]
        self.beat("m2", -1)
        assert isinstance(self.group, ConsumerGroup)
        assert self.group.is_empty

    def test_an_unwritable_conversion_changes_nothing(self) -> None:
        """
        The write may fail now or later.
        """
        member = self.mixed()
        self.log.refusal = FAILED
        self.assert_refused(ErrorCode.NOT_COORDINATOR, self.beat, "m2", -1)
        assert isinstance(self.group, ConsumerGroup)
        self.log.refusal, self.log.slow = None, True
        self.beat("m2", -1)
        assert isinstance(self.group, ClassicGroup)
        self.log.slow = False
        self.log.settle(FAILED)
        assert isinstance(self.group, ConsumerGroup)
        assert self.beat("m2", 2).member_epoch == 2
        self.classic().heartbeat(member.member_id, None, 2)

    def test_a_classic_successor_of_the_last_consumer_converts_the_group(self) -> None:
        self.mixed()
        self.beat("m2", -1)
        self.group = self.migration.consumer_group("g", self.log.write)
        self.beat("s1", 0, instance_id="i1")
        self.beat("s1", -2, instance_id="i1")
        self.join(self.asked(instance_id="i1"))
        assert isinstance(self.group, ClassicGroup)

    def test_a_converted_group_knows_all_protocols(self) -> None:
        """
        It knows those that are not common, too.
        """
        self.mixed()
        self.beat("m2", -1)
        assert isinstance(self.group, ClassicGroup)
        [member] = self.group.members
        assert list(member.protocols) == ["range", "other"]


class ForbiddenDowngradeTests(MigrationTestCase):
    settings = {"group_consumer_migration_policy": "upgrade"}

    def test_the_policy_may_forbid_downgrades(self) -> None:
        """
        The classic members stay in the consumer group.
        """
        member = self.mixed()
        self.beat("m2", -1)
        assert isinstance(self.group, ConsumerGroup)
        self.serving.clock.advance(1)
        beat = self.classic().heartbeat
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, beat, member.member_id, None, member.generation)
        again = self.join(self.asked(member.member_id, {"t": [0, 1]}))
        assert self.sync(again) == {"t": [0, 1, 2, 3]}


class DisabledTests(MigrationTestCase):
    settings = {"group_consumer_migration_policy": "disabled"}

    def test_disabled_migration_refuses_the_other_protocol(self) -> None:
        self.group = self.migration.consumer_group("g", self.log.write)
        self.beat("m1", 0)
        self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join, self.asked())


class ClassicMembersTests(MigrationTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.group = self.migration.consumer_group("g", self.log.write)
        self.beat("m2", 0)

    def test_a_classic_client_joins_a_consumer_group(self) -> None:
        """
        It is given its id first if it supports that, and waits for nobody.
        """
        with pytest.raises(MemberIdRequired) as raised:
            self.join(self.asked(takes_member_id=True))
        joined = self.join(self.asked(raised.value.member_id, takes_member_id=True))
        assert (joined.member_id, joined.generation, joined.protocol) == (raised.value.member_id, 2, "range")
        assert (joined.leader, list(joined.members)) == ("", [])

    def test_joins_are_refused_as_in_a_classic_group(self) -> None:
        self.join(self.asked("m1"))
        for code, asked in (
            (ErrorCode.INVALID_SESSION_TIMEOUT, self.asked(session_timeout_ms=1)),
            (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.asked(protocol_type="connect")),
            (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.asked(protocols=Protocols([("x", subscription(["t"]))]))),
            (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.asked(protocols=Protocols([]))),
            (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.asked(protocols=Protocols([("range", b"")]))),
            (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.asked(protocols=Protocols([("range", b"\0\1\xff")]))),
            (ErrorCode.UNKNOWN_MEMBER_ID, self.asked("m9", instance_id="i")),
        ):
            self.assert_refused(code, self.join, asked)

    def test_requests_are_fenced(self) -> None:
        """
        Only a classic member is served, in its generation, with its own protocol.
        """
        classic, joined = self.classic(), self.join(self.asked("m1"))
        generation = joined.generation
        for code, ask in (
            (ErrorCode.UNKNOWN_MEMBER_ID, lambda: classic.heartbeat("m9", None, generation)),
            (ErrorCode.UNKNOWN_MEMBER_ID, lambda: classic.heartbeat("m2", None, generation)),
            (ErrorCode.ILLEGAL_GENERATION, lambda: classic.heartbeat("m1", None, generation + 1)),
            (
                ErrorCode.ILLEGAL_GENERATION,
                lambda: classic.sync(SyncRequest(member_id="m1", generation=generation + 1)),
            ),
            (
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                lambda: classic.sync(SyncRequest(member_id="m1", generation=generation, protocol="other")),
            ),
            (
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                lambda: classic.sync(SyncRequest(member_id="m1", generation=generation, protocol_type="connect")),
            ),
        ):
            self.assert_refused(code, ask)

    def test_a_member_is_told_when_its_partitions_are_free(self) -> None:
        """
        It has to rejoin then.
        """
        self.serving.clock.advance(1)
        joined = self.join(self.asked("m1"))
        assert (joined.generation, self.sync(joined)) == (3, {})
        self.classic().heartbeat("m1", None, 3)
        assert self.partitions(self.beat("m2", 2)) == [0, 1]
        self.classic().heartbeat("m1", None, 3)
        owned = ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=self.topic.id, partitions=[0, 1])
        self.beat("m2", 2, topic_partitions=[owned])
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.classic().heartbeat, "m1", None, 3)
        assert self.sync(self.join(self.asked("m1"))) == {"t": [2, 3]}

    def test_a_member_that_does_not_rejoin_is_removed(self) -> None:
        """
        Heartbeats do not help after its rebalance timeout.
        """
        self.serving.clock.advance(1)
        joined = self.join(self.asked("m1", rebalance_timeout_ms=15_000))
        self.sync(joined)
        self.serving.clock.advance(1)
        self.beat("m3", 0)
        for _ in range(15):
            self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.classic().heartbeat, "m1", None, 3)
            self.serving.clock.advance(1)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.classic().heartbeat, "m1", None, 3)

    def test_a_member_that_does_not_sync_is_removed(self) -> None:
        for member_id in ("m1", "m4"):
            joined = self.join(self.asked(member_id, rebalance_timeout_ms=10_000))
        self.sync(joined)
        for _ in range(10):
            for member_id in ("m1", "m4"):
                self.classic().heartbeat(member_id, None, 2)
            self.serving.clock.advance(0.05)

        self.serving.clock.advance(9.5)
        assert isinstance(self.group, ConsumerGroup)
        assert {one.member_id for one in self.group.describe().members} == {"m2", "m4"}

    def test_a_late_sync_is_told_to_rejoin(self) -> None:
        """
        The group has begun another epoch since.
        """
        self.serving.clock.advance(1)
        joined = self.join(self.asked("m1"))
        self.serving.clock.advance(1)
        self.beat("m3", 0)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.sync, joined)

    def test_expressions_are_matched_for_their_own_member(self) -> None:
        """
        The permissions of the member count, so a match waits for its request.
        """
        self.serving.broker.create_topic(NewTopic("p-1", 1))
        self.serving.clock.advance(1)
        answer = self.beat("m3", 0, subscribed_topic_names=None, subscribed_topic_regex="p-.*")
        assert self.partitions(answer) == [0]
        self.serving.broker.create_topic(NewTopic("p-2", 1))
        self.serving.clock.advance(1)
        self.join(self.asked("m1"))
        assert not self.group.reads("p-2")
        self.beat("m3", answer.member_epoch)
        assert self.group.reads("p-2")

    def test_a_stale_epoch_is_an_illegal_generation(self) -> None:
        self.join(self.asked("m1"))
        for epoch in (9, 1):
            self.assert_refused(ErrorCode.ILLEGAL_GENERATION, self.commit, epoch)
        self.commit(2)

    def commit(self, epoch: int) -> None:
        check = self.group.check_commit("m1", None, epoch, transactional=False)
        if check:
            check(self.topic.id, 0)

    def test_several_members_leave_in_one_request(self) -> None:
        """
        Each has its own outcome; an administrator names static ones by instance id.
        """
        self.join(self.asked("m1"))
        static = self.join(self.asked(instance_id="i1"))
        outcomes = self.classic().leave(
            [LeavingMember("m1"), LeavingMember("m9"), LeavingMember("", "i1"), LeavingMember("m8", "i9")]
        )
        assert outcomes == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert isinstance(self.group, ConsumerGroup)
        assert static.member_id not in {one.member_id for one in self.group.describe().members}

    def test_a_static_member_rejoins(self) -> None:
        """
        Without a member id it gets its own place, and its predecessor is fenced.
        """
        first = self.join(self.asked(instance_id="i1"))
        second = self.join(self.asked(instance_id="i1"))
        assert first.member_id != second.member_id
        self.assert_refused(
            ErrorCode.FENCED_INSTANCE_ID, self.classic().heartbeat, first.member_id, "i1", second.generation
        )
