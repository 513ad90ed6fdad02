"""
Assignments of partitions to members, and what an assignor is.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from kgateway.wire.uuids import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
Owned = Mapping[Uuid, Mapping[int, int]]  # with the member epoch since which each partition is owned

NOTHING: Mapping[Uuid, frozenset[int]] = MappingProxyType({})
OWNS_NOTHING: Owned = MappingProxyType({})


class TopicPartitions(Protocol):
    topic_id: Uuid
    partitions: list[int]


def assignment_of(named: Iterable[TopicPartitions]) -> Assignment:
    """
    The partitions that a message names. If it names a topic twice, those of both.
    """
    found: dict[Uuid, frozenset[int]] = {}
    for topic in named:
        found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return {topic_id: partitions for topic_id, partitions in found.items() if partitions}


def overlaps(some: Assignment, owned: Owned) -> bool:
    return any(not partitions.isdisjoint(owned.get(topic_id, ())) for topic_id, partitions in some.items())


def are_same(some: Assignment, owned: Owned) -> bool:
    return some.keys() == owned.keys() and all(
        partitions == owned[topic_id].keys() for topic_id, partitions in some.items()
    )


def is_subset(some: Assignment, owned: Owned) -> bool:
    return all(partitions <= owned.get(topic_id, {}).keys() for topic_id, partitions in some.items())


class Subscriber(NamedTuple):
    """
    A member as assignors see it: the topics it subscribes to, all of them existing, and what it was to read until now.
    """

    topics: frozenset[Uuid]
    current: Assignment
    instance_id: str | None = None


# Takes the members by id and the partition counts of topics; gives each partition of each topic to one subscriber.
Assignor = Callable[[Mapping[str, Subscriber], Mapping[Uuid, int]], dict[str, Assignment]]
