"""
Invariants of a consumer group under changes of members and topics, and failures of network and log.
"""

from functools import partial

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.member import MemberState
from kgateway.messages.stored.consumer_group import ConsumerGroupCurrentMemberAssignmentValue
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.groups.consumer.model import Cluster, Consumer

SESSION_S = 45
REBALANCE_S = 60
NAMES = ["apple", "avocado", "banana"]
SUBSCRIPTIONS = [["apple"], ["banana"], ["apple", "banana"], NAMES, [], None]
PATTERNS = ["a.*", ".*", "nothing"]
FAILURES = st.sampled_from([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(GroupConfig(assignment_interval_ms=1000))
        self.clients: list[Consumer] = []
        self.count = 0

    def some(self, number: int) -> Consumer:
        return self.clients[number % len(self.clients)]

    @precondition(lambda self: len(self.clients) < 6)
    @rule(
        topics=st.sampled_from(SUBSCRIPTIONS),
        pattern=st.sampled_from(PATTERNS),
        instance=st.one_of(st.none(), st.integers(0, 1)),
        assignor=st.sampled_from([None, "range", "uniform"]),
        own_id=st.booleans(),
    )
    def joins(
        self, topics: list[str] | None, pattern: str, instance: int | None, assignor: str | None, own_id: bool
    ) -> None:
        self.count += 1
        instance_id = None if instance is None else f"i{instance}"
        if instance_id and any(client.instance_id == instance_id for client in self.clients):
            return
        client = Consumer(
            self.cluster,
            f"m{self.count}" if own_id else "",
            topics,
            pattern if topics is None else None,
            instance_id,
            assignor,
        )
        client.heard_at = self.cluster.clock.seconds()
        self.clients.append(client)
        client.beat()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5), lost=st.booleans())
    def beats(self, number: int, lost: bool) -> None:
        self.beat(self.some(number), lost=lost)

    @precondition(lambda self: self.clients)
    @rule(seconds=st.integers(1, 5))
    def all_beat(self, seconds: int) -> None:
        for client in self.clients:
            self.beat(client)
        self.cluster.clock.advance(seconds)

    def beat(self, client: Consumer, *, lost: bool = False) -> None:
        fenced, doubtful = client.fenced, self.is_doubtful(client) or client.sends_all
        client.beat(lost=lost)
        assert client.fenced == fenced or doubtful, "a member is forgotten while it sends heartbeats in time"

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5), static=st.booleans())
    def leaves(self, number: int, static: bool) -> None:
        client = self.some(number)
        try:
            client.leave(-2 if static and client.instance_id else -1)
        except KafkaError as error:
            if error.code not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                raise
        self.clients.remove(client)

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5))
    def restarts_in_place(self, number: int) -> None:
        """
        Let a static client leave for a while and return under another member id.
        """
        client = self.some(number)
        if client.instance_id is None:
            return
        try:
            client.leave(-2)
        except KafkaError:
            return
        self.clients.remove(client)
        self.count += 1
        back = Consumer(self.cluster, f"m{self.count}", client.topics, client.pattern, client.instance_id)
        back.heard_at = self.cluster.clock.seconds()
        self.clients.append(back)
        back.beat()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5), topics=st.sampled_from(SUBSCRIPTIONS), pattern=st.sampled_from(PATTERNS))
    def subscribes_again(self, number: int, topics: list[str] | None, pattern: str) -> None:
        client = self.some(number)
        client.topics = topics or []
        client.pattern = pattern if topics is None else ""
        client.sends_all = True
        self.beat(client)

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5), stuck=st.booleans())
    def works_long(self, number: int, stuck: bool) -> None:
        client = self.some(number)
        client.revokes = not stuck
        client.reconcile()

    @rule(seconds=st.integers(1, 50))
    def time_passes(self, seconds: int) -> None:
        self.cluster.clock.advance(seconds)

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 5))
    def topic_comes_or_grows(self, name: str, partitions: int) -> None:
        if name in self.cluster.view.topics:
            self.cluster.grow_topic(name, partitions)
        else:
            self.cluster.add_topic(name, partitions)

    @rule(name=st.sampled_from(NAMES))
    def topic_goes(self, name: str) -> None:
        if name in self.cluster.view.topics:
            self.cluster.drop_topic(name)

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 5), code=FAILURES)
    def cannot_write(self, number: int, code: ErrorCode) -> None:
        self.cluster.log.refusal = KafkaError(code)
        self.beat(self.some(number))
        self.cluster.log.refusal = None

    @precondition(lambda self: self.clients)
    @rule(numbers=st.lists(st.integers(0, 5), min_size=1), code=st.one_of(st.none(), FAILURES), lost=st.booleans())
    def writes_take(self, numbers: list[int], code: ErrorCode | None, lost: bool) -> None:
        """
        Let clients send heartbeats while the log is slow; then let all writes succeed, or all fail.
        """
        log = self.cluster.log
        log.slow = True
        for client in {id(client): client for client in map(self.some, numbers)}.values():
            client.begin(lost=lost).addErrback(lambda failure: failure.trap(KafkaError))
        log.slow = False
        log.settle(KafkaError(code) if code else None)

    @rule()
    def restarts(self) -> None:
        """
        Restore the group from its rows, which lack only epochs in which a member's partitions did not change.
        """
        before, was_stable = self.facts(), self.cluster.group.state == "Stable"
        self.cluster.reload()
        assert self.facts() == before
        assert not was_stable or self.cluster.group.state == "Stable"
        for client in self.clients:
            client.heard_at = max(client.heard_at, self.cluster.clock.seconds()) if self.is_member(client) else -1e9

    def facts(self) -> list[str]:
        """
        The rows of the group, without the epochs of members that have reached their target.
        """
        rows = list(self.cluster.group.rows())
        for row in rows:
            value = row.value
            if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue) and value.state == MemberState.STABLE:
                value.member_epoch = value.previous_member_epoch = 0
        return sorted(map(repr, rows))

    def is_member(self, client: Consumer) -> bool:
        return any(member.member_id == client.member_id for member in self.cluster.group.describe().members)

    def is_doubtful(self, client: Consumer) -> bool:
        """
        Whether the group may have removed it by now.
        """
        now = self.cluster.clock.seconds()
        stuck = client.stuck_since is not None and now - client.stuck_since >= REBALANCE_S
        return now - client.heard_at >= SESSION_S or stuck

    @invariant()
    def each_partition_has_one_reader(self) -> None:
        seen: dict[tuple[Uuid, int], Consumer] = {}
        for client in self.clients:
            if client.gave_up or self.is_doubtful(client):
                continue
            for partition in client.owned:
                assert partition not in seen, f"{partition} is read by {client} and {seen[partition]}"
                seen[partition] = client

    @invariant()
    def members_read_on(self) -> None:
        """
        A member with all responses may commit its partitions in its epoch, and fetch offsets.
        """
        group = self.cluster.group
        for client in self.clients:
            if client.epoch and self.is_member(client) and not (client.sends_all or self.is_doubtful(client)):
                group.check_fetch(client.member_id, client.epoch)
                check = group.check_commit(client.member_id, None, client.epoch, transactional=False)
                for owned_id, index in client.owned & client.target:
                    assert check is None or check(owned_id, index) is None

    @invariant()
    def stale_commits_are_refused(self) -> None:
        """
        Only its owner may commit a partition, in epochs since it has owned it.
        """
        group, view = self.cluster.group, self.cluster.view
        for member in group.describe().members:
            check_commit = partial(group.check_commit, member.member_id, None, transactional=False)
            assert check_commit(member.member_epoch) is None
            with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
                check_commit(member.member_epoch + 1)
            check = check_commit(member.member_epoch - 1)
            assert check
            owned = {(part.topic_id, index) for part in member.assignment.topic_partitions for index in part.partitions}
            for topic in view.topics.values():
                for index in range(len(topic.partitions)):
                    if (topic.id, index) not in owned:
                        with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
                            check(topic.id, index)

    def teardown(self) -> None:
        """
        After the last change all members reach their targets, which cover all partitions; then nothing changes.
        """
        self.clients = [client for client in self.clients if not client.gave_up]
        for client in self.clients:
            client.revokes = True
        for _ in range(30):
            self.all_settle()
        self.each_partition_has_one_reader()
        group = self.cluster.group
        assert group.state == ("Stable" if self.clients else "Empty"), group.describe()
        assert {client.member_id for client in self.clients} == {m.member_id for m in group.describe().members}
        wanted = {
            (topic.id, index)
            for name, topic in self.cluster.view.topics.items()
            for index in range(len(topic.partitions))
            if group.reads(name)
        }
        assert wanted == set().union(*(client.owned for client in self.clients))
        written = len(self.cluster.log.rows)
        self.all_settle()
        assert len(self.cluster.log.rows) == written

    def all_settle(self) -> None:
        for client in self.clients:
            client.beat()
        self.cluster.clock.advance(5)


GroupsTests = GroupMachine.TestCase
