"""
Offsets equal those of a dict through commits, deletions, expiry and reloads.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kgateway.coordination import shard as coordinator_shard
from kgateway.topic_partition import TopicPartition
from tests.broker.behaviour import result
from tests.groups.group_world import GroupWorld

GROUPS = st.sampled_from(["g", "h", "i"])
TOPICS = st.sampled_from(["t", "u"])
PARTITIONS = st.integers(0, 2)
PLACES = st.builds(TopicPartition, TOPICS, PARTITIONS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), GROUPS, PLACES, st.integers(0, 1 << 60)),
        st.tuples(st.just("forget"), GROUPS, st.lists(PLACES, max_size=3)),
        st.tuples(st.just("delete"), GROUPS),
        st.tuples(st.just("delete_topic"), TOPICS),
        st.tuples(st.just("advance"), st.integers(1, 40)),
        st.tuples(st.just("again")),
    ),
    max_size=40,
)
CHECK_S, RETENTION_S = 1, 60


class Model(GroupWorld):
    """
    A coordinator and its expected state: the offsets of each group, with their commit times.
    """

    def __init__(self) -> None:
        self.expected: dict[str, dict[TopicPartition, tuple[int, float]]] = {}
        super().__init__(offsets_retention_check_interval_ms=CHECK_S * 1000, offsets_retention_minutes=1)
        for name in ("t", "u"):
            self.topic(name)

    def do_commit(self, group_id: str, place: TopicPartition, offset: int) -> None:
        self.commit(group_id, offset, place.topic, place.index)
        self.expected.setdefault(group_id, {})[place] = offset, self.clock.seconds()

    def do_forget(self, group_id: str, places: list[TopicPartition]) -> None:
        if group_id in self.expected:
            result(self.groups.offsets(group_id).forget(places))
            for place in places:
                self.expected[group_id].pop(place, None)

    def do_delete(self, group_id: str) -> None:
        if self.expected.pop(group_id, None) is None:
            assert self.refused(lambda: self.groups.delete(group_id)) == "GROUP_ID_NOT_FOUND"
        else:
            result(self.groups.delete(group_id))

    def do_delete_topic(self, name: str) -> None:
        result(self.broker.delete_topic(self.broker.view().topics[name].id))
        self.topic(name)
        for offsets in self.expected.values():
            for place in [place for place in offsets if place.topic == name]:
                del offsets[place]

    def do_advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(CHECK_S)
            self._expire()

    def do_again(self) -> None:
        self.again()
        self.expected = {group_id: offsets for group_id, offsets in self.expected.items() if offsets}

    def _expire(self) -> None:
        oldest = self.clock.seconds() - RETENTION_S
        for group_id, offsets in list(self.expected.items()):
            for place in [place for place, (_, since) in offsets.items() if since <= oldest]:
                del offsets[place]
            if not offsets:
                del self.expected[group_id]

    def check(self) -> None:
        expected = {name: {place: one[0] for place, one in found.items()} for name, found in self.expected.items()}
        assert self.state() == expected


@given(STEPS, st.integers(1, 10))
def test_the_coordinator_equals_the_model(steps: list[Any], between_snapshots: int) -> None:
    """
    This holds after each step, whenever it takes snapshots.
    """
    before, coordinator_shard.SNAPSHOT_RECORDS = coordinator_shard.SNAPSHOT_RECORDS, between_snapshots
    try:
        model = Model()
        for name, *arguments in steps:
            getattr(model, f"do_{name}")(*arguments)
            model.check()
        model.do_again()
        model.check()
    finally:
        coordinator_shard.SNAPSHOT_RECORDS = before
