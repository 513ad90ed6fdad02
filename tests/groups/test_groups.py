"""
The groups of a gateway, as handlers find them.
"""

from collections.abc import Callable, Sequence

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.partition import Appended
from kgateway.cluster.view import Node
from kgateway.groups.classic.exchange import Join
from kgateway.groups.classic.protocols import Protocols
from kgateway.groups.consumer.group import Client, ConsumerGroup
from kgateway.groups.group import Group, GroupType
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.interfaces import KeyValue
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.security.permissions import Resource
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, result
from tests.groups.beginning import beginning, empty_classic, empty_consumer
from tests.groups.coordinating import Coordinating, value


@pytest.fixture
def world() -> Coordinating:
    return Coordinating()


def test_unknown_group(world: Coordinating) -> None:
    """
    A group that nobody has made is not found, and asking for it makes none.
    """
    for ask in (world.groups.get, world.groups.find, world.groups.offsets, world.groups.delete):
        assert world.refused(lambda ask=ask: ask("g")) == "GROUP_ID_NOT_FOUND"  # type: ignore[misc]
    for kind in (world.groups.classic, world.groups.consumer):
        assert world.refused(lambda kind=kind: kind("g", False)) == "GROUP_ID_NOT_FOUND"  # type: ignore[misc]
    assert world.state() == {}


def test_same_group(world: Coordinating) -> None:
    """
    Whoever asks for a group gets the same one.
    """
    group = empty_classic(world.groups, "g")
    assert group is world.groups.classic("g", False) is world.groups.find("g") is world.groups.simple("g").group
    assert (group.group_id, group.type, group.state) == ("g", GroupType.CLASSIC, "Empty")
    assert world.groups.offsets("g") is world.groups.get("g").offsets


def test_nothing_is_made_before_it_is_needed(world: Coordinating) -> None:
    """
    The internal topic comes with the first group that somebody asks for.
    """
    assert result(world.all()) == []
    assert "__consumer_offsets" not in world.broker.view().topics
    empty_classic(world.groups, "g")
    assert "__consumer_offsets" in world.broker.view().topics


def test_groups_are_loaded_again(world: Coordinating) -> None:
    """
    A new coordinator knows all offsets, of groups that nobody asked for too.
    """
    world.topic("t")
    for number in range(20):
        world.commit(f"g{number}", number, partition=number % 4)
    state = world.state()
    assert len(state) == 20
    world.again()
    assert world.state() == state


def test_groups_elsewhere(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Groups of another node are not found here, and who asks where they are is told.
    """
    monkeypatch.setattr(world.broker, "coordinator", lambda *_: Node(2))
    assert world.groups.coordinator("g") == Node(2)
    assert world.refused(lambda: world.groups.simple("g")) == "NOT_COORDINATOR"


def test_groups_whose_log_cannot_be_had(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where the broker cannot give the log now, clients are told to look for the coordinator again, and that there is none
    just now.
    """

    def not_yet(resource: Resource, key: str = "") -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is being looked through")

    for name in ("coordinator", "coordinators"):
        monkeypatch.setattr(world.broker, name, not_yet)
    assert world.refused(lambda: world.groups.coordinator("g")) == "COORDINATOR_NOT_AVAILABLE"
    assert world.refused(lambda: world.groups.simple("g")) == "NOT_COORDINATOR"
    assert world.refused(world.all) == "NOT_COORDINATOR"
    world.again()  # which says so, and lives


def test_lost_log(world: Coordinating) -> None:
    """
    When the internal topic goes all groups go, and the next one begins anew.
    """
    world.topic("t")
    world.commit("g", 1)
    offsets = world.groups.offsets("g")
    result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
    assert world.refused(lambda: offsets.commit([(Place("t", 0), value(2))])) == "NOT_COORDINATOR"
    assert world.state() == {}
    world.commit("g", 3)
    assert world.state() == {"g": {Place("t", 0): 3}}


def test_stopped(world: Coordinating) -> None:
    """
    A gateway that stops coordinates nothing, and leaves no timers.
    """
    world.topic("t")
    world.commit("g", 1)
    for _ in range(2):
        world.parts.stop()
    assert world.clock.getDelayedCalls() == []
    for ask in (world.groups.find, world.groups.simple, world.groups.coordinator):
        assert world.refused(lambda ask=ask: ask("g")) == "COORDINATOR_NOT_AVAILABLE"  # type: ignore[misc]
    assert world.refused(world.all) == "COORDINATOR_NOT_AVAILABLE"
    with capturedLogs() as logged:
        result(world.broker.delete_topic(world.broker.view().topics["t"].id))
    assert logged == []  # it does not hear of that


def test_empty_groups_change_their_kind(world: Coordinating) -> None:
    """
    A group without members becomes what the first member speaks, with the same offsets, there and back; and after
    the next load it is what it was made last.
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
    assert world.state() == {"g": {Place("t", 0): 1}}


def test_groups_with_members_stay_what_they_are() -> None:
    """
    The kind of a group that has members does not change, unless they may migrate.
    """
    world = Coordinating(group_consumer_migration_policy="disabled")
    world.with_member("g")
    assert world.refused(lambda: world.groups.consumer("g", True)) == "GROUP_ID_NOT_FOUND"
    assert world.refused(lambda: world.groups.delete("g")) == "NON_EMPTY_GROUP"
    assert world.groups.classic("g", True).state == "Stable"


def test_consumer_groups_with_members(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So it is with members of the consumer protocol.
    """
    group = empty_consumer(world.groups, "g")
    monkeypatch.setattr(ConsumerGroup, "is_empty", property(lambda _: False))
    assert world.refused(lambda: world.groups.classic("g", True)) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.groups.consumer("g", True) is group


def test_delete(world: Coordinating) -> None:
    """
    A deleted group is gone with its offsets, now and after the next load; another one is not.
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


def test_become(world: Coordinating) -> None:
    """
    A group that has changed its kind by itself is put in the place of what it was, beside its offsets.
    """
    world.topic("t")
    world.commit("g", 1)
    other = empty_classic(Coordinating().groups, "g")
    world.groups.become(other)
    assert world.groups.find("g") is other
    assert world.groups.offsets("g")
    world.parts.stop()
    late = empty_classic(Coordinating().groups, "g")
    world.groups.become(late)
    assert late.state == "Dead"


def test_migration(world: Coordinating) -> None:
    """
    For the first member of the consumer protocol a classic group with members is what it will be; it is the group as
    soon as that is written, and as long as not the members are served as before.
    """
    subscription = bytes(2) + encode(ConsumerProtocolSubscription(topics=["t"], user_data=None), 0)
    world.topic("t")
    world.commit("g", 1)
    world.with_member("g", subscription)
    group = world.groups.consumer("g", True)
    assert (group.type, world.groups.find("g").type) == (GroupType.CONSUMER, GroupType.CLASSIC)
    world.groups.become(group)
    assert world.groups.consumer("g", False) is group
    assert world.state() == {"g": {Place("t", 0): 1}}


def test_waiting_for_the_load(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Who asks for a group while it is loaded comes too early; who asks for all of them waits.
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
    assert asked == ["replay"]  # before anybody asks for a group
    assert world.refused(lambda: world.groups.find("g")) == "COORDINATOR_LOAD_IN_PROGRESS"
    listed = world.all()
    assert not listed.called
    read.callback(replayed)
    assert [group.group_id for group in result(listed)] == ["g"]


def test_load_that_fails(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where a log cannot be read its groups are not here; who asks again lets it be tried again.
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


def test_state_logs_of_the_broker() -> None:
    """
    The broker tells all state logs of groups, those that it gives by key, once there are any.
    """
    broker = MemoryBroker(now_ms=lambda: START_MS, offsets_partitions=3)
    assert broker.coordinators(Resource.GROUP) == []
    by_key = {broker.coordinator(Resource.GROUP, str(number)) for number in range(50)}
    logs = broker.coordinators(Resource.GROUP)
    assert len(logs) == 3
    assert set(logs) == by_key
    broker.coordinator(Resource.TRANSACTIONAL_ID, "t")
    assert len(broker.coordinators(Resource.TRANSACTIONAL_ID)) == 8


def _refused_heartbeat(world: Coordinating) -> str:
    """
    What a member is told whose regular expression is none.
    """
    request = beginning("g", subscribed_topic_regex="[")
    client = Client("client", "/127.0.0.1", lambda topic: True)
    return world.refused(lambda: world.groups.consumer("g", True).heartbeat(request, client))


def _refused_join(world: Coordinating) -> str:
    """
    What a member is told that offers no protocol.
    """
    asked = Join(
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
def test_a_refused_member_begins_no_group(world: Coordinating, ask: Callable[[Coordinating], str], code: str) -> None:
    """
    Where there was none there is none still.
    """
    assert ask(world) == code
    assert result(world.all()) == []
    world.again()
    assert result(world.all()) == []


@pytest.mark.parametrize("empty", [empty_classic, empty_consumer])
@pytest.mark.parametrize(("ask", "code"), REFUSED)
def test_a_refused_member_ends_no_group(
    world: Coordinating, empty: Callable[[Groups, str], Group], ask: Callable[[Coordinating], str], code: str
) -> None:
    """
    An empty group stays what it is, of either kind, also after the next load.
    """
    before = empty(world.groups, "g")
    assert ask(world) == code
    assert world.groups.find("g") is before
    assert before.state == "Empty"
    world.again()
    assert world.groups.find("g").type is before.type


def test_a_group_that_cannot_be_written_does_not_begin(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The one that was there stays, and the next member begins another.
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


def test_one_batch_ends_a_group_and_begins_another(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So that a crash leaves one of them.
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
