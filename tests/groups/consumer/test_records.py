"""
A consumer group as rows with Kafka's bytes.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.groups.consumer.journal import ChangeSet
from kgateway.groups.consumer.member import Classic, ClassicProtocol, MemberState, Profile, Progress
from kgateway.groups.consumer.records import Epoch, Matches, TargetMetadata, progress_from, progress_row
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.records import Row, decoded, encoded
from kgateway.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)
from tests.groups.consumer.model import topic_id

TEXT = st.text(max_size=4)
NULLABLE = st.one_of(st.none(), TEXT)
INT = st.integers(-1, 1 << 20)
IDS = st.integers(1, 3).map(topic_id)
PARTITIONS = st.frozensets(st.integers(0, 5), min_size=1)
TARGETS = st.dictionaries(IDS, PARTITIONS, max_size=3)
OWNED = st.dictionaries(IDS, st.dictionaries(st.integers(0, 5), INT, min_size=1), max_size=3)
CLASSIC = st.builds(
    Classic, INT, st.lists(st.builds(ClassicProtocol, TEXT, st.binary(max_size=4)), max_size=2).map(tuple)
)
PROFILES = st.builds(
    Profile, NULLABLE, NULLABLE, TEXT, TEXT, st.frozensets(TEXT), TEXT, INT, NULLABLE, st.one_of(st.none(), CLASSIC)
)
PROGRESS = st.builds(Progress, INT, INT, st.sampled_from(list(MemberState)), OWNED, OWNED)
MEMBERS = st.dictionaries(TEXT, st.tuples(PROFILES, PROGRESS, TARGETS), max_size=3)
MATCHES = st.dictionaries(TEXT, st.builds(Matches, st.frozensets(TEXT), INT, INT), max_size=2)


def state_of(members: dict[str, tuple[Profile, Progress, dict]], matches: dict[str, Matches]) -> ConsumerGroupState:  # type: ignore[type-arg]
    state = ConsumerGroupState("g")
    state.set_epoch(Epoch(7, -5))
    state.set_target_metadata(TargetMetadata(6, 1_700_000_000_000))
    for member_id, (profile, progress, target) in members.items():
        state.set_profile(member_id, profile)
        state.set_progress(member_id, progress)
        state.set_target(member_id, target)
    for pattern, found in matches.items():
        state.set_matches(pattern, found)
    return state


def facts(state: ConsumerGroupState) -> tuple[object, ...]:
    return (
        state.epoch,
        state.target_metadata,
        state.profiles,
        state.progress,
        state.targets,
        state.matches,
        state.static.keys(),
        state.assignors,
        state.patterns,
        state.classic_protocols,
        state.classic_count,
        state.topics_read(),
    )


@given(members=MEMBERS, matches=MATCHES)
def test_rows_round_trip(members: dict[str, tuple[Profile, Progress, dict]], matches: dict[str, Matches]) -> None:  # type: ignore[type-arg]
    """
    Rows, as bytes, restore the group; their tombstones leave nothing of it.
    """
    state, again = state_of(members, matches), ConsumerGroupState("g")
    for row in state.rows():
        read = decoded(*encoded(row))
        assert read
        again.replay(read)
    assert facts(again) == facts(state)
    for row in state.tombstones():
        assert row.value is None
        again.replay(row)
    assert facts(again) == facts(ConsumerGroupState("g"))


@given(before=MEMBERS, after=MEMBERS, matches=MATCHES)
def test_a_change_set_can_be_undone(before: dict, after: dict, matches: dict[str, Matches]) -> None:  # type: ignore[type-arg]
    """
    One that is not undone has all changes in its rows.
    """
    state, follower = state_of(before, {}), ConsumerGroupState("g")
    for row in state.rows():
        follower.replay(row)
    was = facts(state_of(before, {}))
    draft = ChangeSet(state)
    draft.set_epoch(Epoch(8, 1))
    draft.set_target_metadata(TargetMetadata(8, 1))
    for member_id in before:
        draft.drop_member(member_id)
    for member_id, (profile, progress, target) in after.items():
        draft.set_profile(member_id, profile)
        draft.set_progress(member_id, progress)
        draft.set_target(member_id, target)
    for pattern, found in matches.items():
        draft.set_matches(pattern, found)
    for row in draft.rows:
        follower.replay(row)
    assert facts(follower) == facts(state)
    draft.undo()
    assert facts(state)[:6] == was[:6]
    assert facts(state)[7:] == was[7:]


def test_rows_of_old_servers_are_read() -> None:
    """
    Partitions without epochs are owned since the member's epoch; an unknown state is UNKNOWN.
    """
    owned = [TopicPartitions(topic_id=topic_id(1), partitions=[0, 2])]
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=5,
        previous_member_epoch=4,
        state=9,
        assigned_partitions=owned,
        partitions_pending_revocation=[],
    )
    assert progress_from(value) == Progress(5, 4, MemberState.UNKNOWN, {topic_id(1): {0: 5, 2: 5}}, {})


def test_old_topic_rows_are_deleted() -> None:
    """
    The topics as servers before Kafka 4.1 stored them are deleted when the next epoch begins.
    """
    state = ConsumerGroupState("g")
    state.replay(Row(ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue(topics=[])))
    draft = ChangeSet(state)
    draft.set_epoch(Epoch(2, 0))
    assert draft.rows[-1] == Row(ConsumerGroupPartitionMetadataKey(group_id="g"), None)
    draft.undo()
    assert state.tombstones()[0] == draft.rows[-1]


def test_the_last_written_owner_counts() -> None:
    """
    A revocation by the old owner in a later row does not take the partition from the new one.
    """
    one = topic_id(1)
    state = ConsumerGroupState("g")
    state.replay(progress_row("g", "a", Progress(3, 2, assigned={one: {0: 2}})))
    state.replay(progress_row("g", "b", Progress(3, 2, assigned={one: {0: 3}})))
    state.replay(progress_row("g", "a", Progress(3, 3)))
    assert state.is_free_for("b")(one, 0)
    assert not state.is_free_for("a")(one, 0)


def test_rows_without_a_member_hold_no_partition() -> None:
    one = topic_id(1)
    state = ConsumerGroupState("g")
    state.replay(progress_row("g", "a", Progress(3, 2, assigned={one: {0: 2}})))
    state.set_target("a", {one: frozenset([0])})
    state.sweep()
    assert state.is_free_for("b")(one, 0)
    assert (state.progress, state.targets) == ({}, {})
