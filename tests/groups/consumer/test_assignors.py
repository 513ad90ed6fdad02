"""
The server-side assignors.
"""

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.groups.assignors.assignment import Assignment, Assignor, Subscriber
from kgateway.groups.assignors.range import assign_ranges
from kgateway.groups.assignors.uniform import assign_uniformly
from kgateway.groups.consumer.target import ASSIGNORS
from kgateway.wire.uuids import Uuid
from tests.groups.consumer.model import topic_id

A, B, C = (topic_id(number) for number in (1, 2, 3))
COUNTS = st.fixed_dictionaries({topic: st.integers(1, 7) for topic in (A, B, C)})
TOPICS = st.frozensets(st.sampled_from([A, B, C]))
IDS = [f"m{number}" for number in range(6)]
INSTANCES = st.lists(st.booleans(), min_size=len(IDS), max_size=len(IDS))


@st.composite
def groups(draw: st.DrawFn, alike: bool = False) -> dict[str, Subscriber]:
    """
    Members with any subscriptions, and earlier assignments made for any others.
    """
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True))
    static = draw(INSTANCES)
    same = draw(TOPICS)
    owner = {(topic, index): draw(st.sampled_from([*ids, None])) for topic, index in product((A, B, C), range(9))}
    members = {}
    for member_id in ids:
        current = {
            topic: frozenset(index for index in range(9) if owner[topic, index] == member_id) for topic in (A, B, C)
        }
        members[member_id] = Subscriber(
            same if alike else draw(TOPICS),
            {topic: partitions for topic, partitions in current.items() if partitions},
            f"i{9 - int(member_id[1:])}" if static[int(member_id[1:])] else None,
        )
    return members


def loads(assigned: Mapping[str, Assignment]) -> dict[str, int]:
    return {member_id: sum(map(len, mine.values())) for member_id, mine in assigned.items()}


def kept(members: Mapping[str, Subscriber], assigned: Mapping[str, Assignment]) -> int:
    """
    The number of partitions that their member keeps.
    """
    return sum(
        len(partitions & members[member_id].current.get(topic, frozenset()))
        for member_id, mine in assigned.items()
        for topic, partitions in mine.items()
    )


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=list(ASSIGNORS))
@given(members=groups(), counts=COUNTS)
def test_each_partition_is_assigned_to_one_subscriber(
    assign: Assignor, members: dict[str, Subscriber], counts: dict[Uuid, int]
) -> None:
    """
    This holds for topics with subscribers.
    """
    assigned = assign(members, counts)
    assert assigned.keys() == members.keys()
    given_out = [
        (topic, index) for mine in assigned.values() for topic, partitions in mine.items() for index in partitions
    ]
    read = frozenset[Uuid]().union(*(member.topics for member in members.values()))
    assert sorted(given_out) == sorted((topic, index) for topic in read for index in range(counts[topic]))
    for member_id, mine in assigned.items():
        assert mine.keys() <= members[member_id].topics
        assert all(mine.values()), "a topic of which it reads nothing is not named"


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=list(ASSIGNORS))
@given(members=groups(), counts=COUNTS)
def test_order_does_not_matter(assign: Assignor, members: dict[str, Subscriber], counts: dict[Uuid, int]) -> None:
    turned = dict(reversed(list(members.items())))
    assert assign(turned, dict(reversed(list(counts.items())))) == assign(members, counts)


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=list(ASSIGNORS))
@given(members=groups(), counts=COUNTS)
def test_reassignment_moves_nothing(assign: Assignor, members: dict[str, Subscriber], counts: dict[Uuid, int]) -> None:
    assigned = assign(members, counts)
    again = {member_id: member._replace(current=assigned[member_id]) for member_id, member in members.items()}
    assert assign(again, counts) == assigned


@given(members=groups(alike=True), counts=COUNTS)
def test_uniform_with_equal_subscriptions(members: dict[str, Subscriber], counts: dict[Uuid, int]) -> None:
    """
    Loads differ by one at most, and as few partitions as possible move.
    """
    assigned = assign_uniformly(members, counts)
    numbers = sorted(loads(assigned).values())
    assert numbers[-1] - numbers[0] <= 1
    # Members with the most partitions keep the extra ones, and none keeps more than its share.
    topics = next(iter(members.values())).topics
    least, extra = divmod(sum(counts[topic] for topic in topics), len(members))
    had = sorted(
        (
            sum(
                len([index for index in partitions if index < counts[topic]])
                for topic, partitions in member.current.items()
                if topic in topics
            )
            for member in members.values()
        ),
        reverse=True,
    )
    assert kept(members, assigned) == sum(min(most, least + (rank < extra)) for rank, most in enumerate(had))


@given(members=groups(), counts=COUNTS)
def test_uniform_with_unequal_subscriptions(members: dict[str, Subscriber], counts: dict[Uuid, int]) -> None:
    """
    No move of one partition would make loads more even.
    """
    assigned = assign_uniformly(members, counts)
    number = loads(assigned)
    for member_id, mine in assigned.items():
        for topic in mine:
            lightest = min(number[other] for other, member in members.items() if topic in member.topics)
            assert number[member_id] - lightest <= 1


def test_uniform_moves_little_with_unequal_subscriptions() -> None:
    """
    A member with its own subscription does not cost others their partitions.
    """
    before = assign_uniformly({m: Subscriber(frozenset([A]), {}) for m in ("m1", "m2")}, {A: 4})
    members = {m: Subscriber(frozenset([A]), before[m]) for m in ("m1", "m2")}
    members["m3"] = Subscriber(frozenset([B]), {})
    assert assign_uniformly(members, {A: 4, B: 2}) == {**before, "m3": {B: frozenset([0, 1])}}


def test_uniform_gives_a_new_member_its_share() -> None:
    """
    Nothing moves between the others.
    """
    before = assign_uniformly({m: Subscriber(frozenset([A]), {}) for m in ("m1", "m2")}, {A: 6})
    members = {m: Subscriber(frozenset([A]), before[m]) for m in ("m1", "m2")}
    after = assign_uniformly({**members, "m0": Subscriber(frozenset([A]), {})}, {A: 6})
    assert loads(after) == {"m0": 2, "m1": 2, "m2": 2}
    assert after["m1"][A] < before["m1"][A]
    assert after["m2"][A] < before["m2"][A]


def test_uniform_corrects_double_assignments() -> None:
    """
    A partition assigned to two members goes to one of them.
    """
    members = {m: Subscriber(frozenset([A]), {A: frozenset([0, 1])}) for m in ("m1", "m2")}
    assert assign_uniformly(members, {A: 2}) == {"m1": {A: frozenset([0])}, "m2": {A: frozenset([1])}}


def test_without_members_nothing_is_assigned() -> None:
    assert assign_uniformly({}, {}) == {}
    assert assign_ranges({}, {}) == {}


def test_ranges_are_contiguous() -> None:
    """
    The first members get one more, and static members come first, by instance id.
    """
    both, only = frozenset([A, B]), frozenset([A])
    members = {
        "m1": Subscriber(both, {}),
        "m2": Subscriber(only, {}, "i2"),
        "m3": Subscriber(both, {}, "i1"),
    }
    assert assign_ranges(members, {A: 5, B: 2}) == {
        "m3": {A: frozenset([0, 1]), B: frozenset([0])},
        "m2": {A: frozenset([2, 3])},
        "m1": {A: frozenset([4]), B: frozenset([1])},
    }


def test_ranges_of_few_partitions() -> None:
    """
    With fewer partitions than subscribers the last ones get none.
    """
    members = {m: Subscriber(frozenset([A]), {}) for m in ("m1", "m2", "m3")}
    assert assign_ranges(members, {A: 2}) == {"m1": {A: frozenset([0])}, "m2": {A: frozenset([1])}, "m3": {}}


def test_static_members_keep_their_range() -> None:
    """
    The instance id decides, not the member id.
    """
    members = {"m5": Subscriber(frozenset([A]), {}, "i1"), "m6": Subscriber(frozenset([A]), {}, "i2")}
    back = {"m9": members["m5"], "m6": members["m6"]}
    assert assign_ranges(back, {A: 4})["m9"] == assign_ranges(members, {A: 4})["m5"]
