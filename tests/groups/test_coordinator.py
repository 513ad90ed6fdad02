"""
The group coordinator as handlers see it.
"""

from collections.abc import Callable, Sequence

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.partition import Appended
from kgateway.cluster.view import Node
from kgateway.groups.classic.requests import JoinRequest, Protocols
from kgateway.groups.consumer.group import Client, ConsumerGroup
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import Group, GroupType
from kgateway.interfaces import KeyValue
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, result
from tests.groups.empty_groups import beginning, empty_classic, empty_consumer
from tests.groups.group_world import GroupWorld, value


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


def test_looking_up_an_unknown_group_creates_none(world: GroupWorld) -> None:
    for ask in (world.groups.entry, world.groups.find, world.groups.offsets, world.groups.delete):
        assert world.refused(lambda ask=ask: ask("g")) == "GROUP_ID_NOT_FOUND"  # type: ignore[misc]
    for kind in (world.groups.classic, world.groups.consumer):
        assert world.refused(lambda kind=kind: kind("g", False)) == "GROUP_ID_NOT_FOUND"  # type: ignore[misc]
    assert world.state() == {}


def test_requests_for_one_group_share_it(world: GroupWorld) -> None:
    group = empty_classic(world.groups, "g")
    assert group is world.groups.classic("g", False) is world.groups.find("g") is world.groups.entry_or_new("g").group
    assert (group.group_id, group.type, group.state) == ("g", GroupType.CLASSIC, "Empty")
    assert world.groups.offsets("g") is world.groups.entry("g").offsets


def test_the_internal_topic_is_created_on_first_use(world: GroupWorld) -> None:
    """
    The first group that a client asks for creates it.
    """
    assert result(world.all()) == []
    assert "__consumer_offsets" not in world.broker.view().topics
    empty_classic(world.groups, "g")
    assert "__consumer_offsets" in world.broker.view().topics


def test_a_new_coordinator_loads_all_groups(world: GroupWorld) -> None:
    """
    It also loads offsets of groups that nobody has asked for.
    """
    world.topic("t")
    for number in range(20):
        world.commit(f"g{number}", number, partition=number % 4)
    state = world.state()
    assert len(state) == 20
    world.again()
    assert world.state() == state


def test_groups_of_another_node_are_refused(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    FindCoordinator names that node.
    """
    monkeypatch.setattr(world.broker, "coordinator", lambda *_: Node(2))
    assert world.groups.node_of("g") == Node(2)
    assert world.refused(lambda: world.groups.entry_or_new("g")) == "NOT_COORDINATOR"


def test_an_unavailable_log_refuses_its_groups(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Requests get NOT_COORDINATOR, and FindCoordinator gets COORDINATOR_NOT_AVAILABLE.
    """

    def not_yet(resource: Resource, key: str = "") -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is being looked through")

    for name in ("coordinator", "coordinators"):
        monkeypatch.setattr(world.broker, name, not_yet)
    assert world.refused(lambda: world.groups.node_of("g")) == "COORDINATOR_NOT_AVAILABLE"
    assert world.refused(lambda: world.groups.entry_or_new("g")) == "NOT_COORDINATOR"
    assert world.refused(world.all) == "NOT_COORDINATOR"
    world.again()  # the broker says so and is running


def test_deleting_the_internal_topic_deletes_its_groups(world: GroupWorld) -> None:
    """
    New ones can be created.
    """
    world.topic("t")
    world.commit("g", 1)
    offsets = world.groups.offsets("g")
    result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
    assert world.refused(lambda: offsets.commit([(TopicPartition("t", 0), value(2))])) == "NOT_COORDINATOR"
    assert world.state() == {}
    world.commit("g", 3)
    assert world.state() == {"g": {TopicPartition("t", 0): 3}}


def test_a_stopping_gateway_coordinates_nothing(world: GroupWorld) -> None:
    """
    No timer is left.
    """
    world.topic("t")
    world.commit("g", 1)
    for _ in range(2):
        world.parts.stop()
    assert world.clock.getDelayedCalls() == []
    for ask in (world.groups.find, world.groups.entry_or_new, world.groups.node_of):
        assert world.refused(lambda ask=ask: ask("g")) == "COORDINATOR_NOT_AVAILABLE"  # type: ignore[misc]
    assert world.refused(world.all) == "COORDINATOR_NOT_AVAILABLE"
    with capturedLogs() as logged:
        result(world.broker.delete_topic(world.broker.view().topics["t"].id))
    assert logged == []  # the stopped coordinator is not told


def test_an_empty_group_takes_the_protocol_of_its_next_member(world: GroupWorld) -> None:
    """
    It keeps its offsets, in both directions; a load restores the last protocol.
    """
    world.topic("t")
    world.commit("g", 1)
    classic = world.groups.find("g")
    consumer = empty_consumer(world.groups, "g")
    assert consumer.type is GroupType.CONSUMER
    assert world.groups.consumer("g", False) is consumer
    assert world.refused(lambda: world.groups.classic("g", False)) == "GROUP_ID_NOT_FOUND"
    again = empty_classic(world.groups, "g")
    assert world.groups.find("g") is again
    assert again is not classic
    assert again.type is GroupType.CLASSIC
    assert world.state() == {"g": {TopicPartition("t", 0): 1}}


def test_a_group_with_members_keeps_its_protocol() -> None:
    """
    The exception is a migration.
    """
    world = GroupWorld(group_consumer_migration_policy="disabled")
    world.with_member("g")
    assert world.refused(lambda: world.groups.consumer("g", True)) == "GROUP_ID_NOT_FOUND"
    assert world.refused(lambda: world.groups.delete("g")) == "NON_EMPTY_GROUP"
    assert world.groups.classic("g", True).state == "Stable"


def test_a_consumer_group_with_members_keeps_its_protocol(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    group = empty_consumer(world.groups, "g")
    monkeypatch.setattr(ConsumerGroup, "is_empty", property(lambda _: False))
    assert world.refused(lambda: world.groups.classic("g", True)) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.groups.consumer("g", True) is group


def test_a_deleted_group_loses_its_offsets(world: GroupWorld) -> None:
    """
    It stays deleted after the next load; other groups are kept.
    """
    world.topic("t")
    for group_id in ("g", "h"):
        for partition in range(3):
            world.commit(group_id, 1, partition=partition)
    result(world.groups.delete("g"))
    assert world.refused(lambda: world.groups.find("g")) == "GROUP_ID_NOT_FOUND"
    assert list(world.state()) == ["h"]
    world.again()
    assert list(world.state()) == ["h"]


def test_a_converted_group_replaces_the_old_one(world: GroupWorld) -> None:
    """
    It has the same offsets.
    """
    world.topic("t")
    world.commit("g", 1)
    other = empty_classic(GroupWorld().groups, "g")
    world.groups.replace(other)
    assert world.groups.find("g") is other
    assert world.groups.offsets("g")
    world.parts.stop()
    late = empty_classic(GroupWorld().groups, "g")
    world.groups.replace(late)
    assert late.state == "Dead"


def test_a_classic_group_migrates_for_a_consumer(world: GroupWorld) -> None:
    """
    It is converted once that is written; until then its members are served as before.
    """
    subscription = bytes(2) + encode(ConsumerProtocolSubscription(topics=["t"], user_data=None), 0)
    world.topic("t")
    world.commit("g", 1)
    world.with_member("g", subscription)
    group = world.groups.consumer("g", True)
    assert (group.type, world.groups.find("g").type) == (GroupType.CONSUMER, GroupType.CLASSIC)
    world.groups.replace(group)
    assert world.groups.consumer("g", False) is group
    assert world.state() == {"g": {TopicPartition("t", 0): 1}}


def test_requests_during_a_load_are_refused(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A listing waits.
    """
    world.topic("t")
    world.commit("g", 1)
    log = world.broker.coordinator(Resource.GROUP, "g")
    read: Deferred[object] = Deferred()
    replayed = result(log.replay())  # type: ignore[union-attr]
    asked: list[str] = []

    def replay() -> Deferred[object]:
        asked.append("replay")
        return read

    monkeypatch.setattr(log, "replay", replay)
    world.parts.stop()
    world.start()
    assert asked == ["replay"]  # before any request for a group
    assert world.refused(lambda: world.groups.find("g")) == "COORDINATOR_LOAD_IN_PROGRESS"
    listed = world.all()
    assert not listed.called
    read.callback(replayed)
    assert [group.group_id for group in result(listed)] == ["g"]


def test_a_failed_load_is_retried_by_the_next_request(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Until then the groups are not here.
    """
    world.topic("t")
    world.commit("g", 1)
    log = world.broker.coordinator(Resource.GROUP, "g")
    world.parts.stop()
    reads: list[Deferred[object]] = []

    def replay() -> Deferred[object]:
        reads.append(Deferred())
        return reads[-1]

    with monkeypatch.context() as patched:
        patched.setattr(log, "replay", replay)
        world.start()
        listed = world.all()
        reads[0].errback(KafkaError(ErrorCode.NOT_COORDINATOR, "no"))
        assert result(listed) == []
        assert world.refused(lambda: world.groups.find("g")) == "COORDINATOR_LOAD_IN_PROGRESS"
        assert len(reads) == 2
        reads[1].errback(KafkaError(ErrorCode.NOT_COORDINATOR, "no"))
    assert world.groups.find("g").group_id == "g"


def test_the_broker_lists_the_state_logs() -> None:
    """
    They are those that it returns by key.
    """
    broker = MemoryBroker(now_ms=lambda: START_MS, offsets_partitions=3)
    assert broker.coordinators(Resource.GROUP) == []
    by_key = {broker.coordinator(Resource.GROUP, str(number)) for number in range(50)}
    logs = broker.coordinators(Resource.GROUP)
    assert len(logs) == 3
    assert set(logs) == by_key
    broker.coordinator(Resource.TRANSACTIONAL_ID, "t")
    assert len(broker.coordinators(Resource.TRANSACTIONAL_ID)) == 8


def _refused_heartbeat(world: GroupWorld) -> str:
    """
    The refusal of a member with an invalid regular expression.
    """
    request = beginning("g", subscribed_topic_regex="[")
    client = Client("client", "/127.0.0.1", lambda topic: True)
    return world.refused(lambda: world.groups.consumer("g", True).heartbeat(request, client))


def _refused_join(world: GroupWorld) -> str:
    """
    The refusal of a member without a protocol.
    """
    asked = JoinRequest(
        member_id="",
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=Protocols([]),
        takes_member_id=True,
        can_skip_assignment=True,
    )
    return world.refused(lambda: world.groups.classic("g", True).join(asked))


REFUSED = [
    pytest.param(_refused_heartbeat, "INVALID_REGULAR_EXPRESSION", id="heartbeat"),
    pytest.param(_refused_join, "INCONSISTENT_GROUP_PROTOCOL", id="join"),
]


@pytest.mark.parametrize(("ask", "code"), REFUSED)
def test_a_refused_member_creates_no_group(world: GroupWorld, ask: Callable[[GroupWorld], str], code: str) -> None:
    assert ask(world) == code
    assert result(world.all()) == []
    world.again()
    assert result(world.all()) == []


@pytest.mark.parametrize("empty", [empty_classic, empty_consumer])
@pytest.mark.parametrize(("ask", "code"), REFUSED)
def test_a_refused_member_leaves_an_empty_group_unchanged(
    world: GroupWorld, empty: Callable[[GroupCoordinator, str], Group], ask: Callable[[GroupWorld], str], code: str
) -> None:
    """
    This holds for both kinds of groups, also after the next load.
    """
    before = empty(world.groups, "g")
    assert ask(world) == code
    assert world.groups.find("g") is before
    assert before.state == "Empty"
    world.again()
    assert world.groups.find("g").type is before.type


def test_an_unwritable_group_keeps_the_old_one(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The next member begins another group.
    """
    before = empty_classic(world.groups, "g")
    log = world.broker.coordinator(Resource.GROUP, "g")

    def full(records: object, producer: object) -> object:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", full)
        assert world.refused(lambda: empty_consumer(world.groups, "g")) == "NOT_COORDINATOR"
    assert world.groups.find("g") is before
    assert empty_consumer(world.groups, "g") is world.groups.find("g")


def test_one_batch_replaces_a_group(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It deletes the old group and creates the new one, so that a crash leaves one of them.
    """
    empty_classic(world.groups, "g")
    log = world.broker.coordinator(Resource.GROUP, "g")
    append, batches = log.append, list[list[bytes | None]]()  # type: ignore[union-attr]

    def noted(records: Sequence[KeyValue], producer: None) -> Appended:
        batches.append([value for _, value in records])
        return append(records)

    monkeypatch.setattr(log, "append", noted)
    empty_consumer(world.groups, "g")
    assert batches[0][0] is None
    assert len(batches[0]) > 1
    assert all(batches[0][1:])
