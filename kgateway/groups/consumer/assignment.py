"""
Sets of partitions, by topic.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from kgateway.wire.uuids import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
Owned = Mapping[Uuid, Mapping[int, int]]  # each partition with the member epoch since which it is owned

NOTHING: Mapping[Uuid, frozenset[int]] = MappingProxyType({})
OWNS_NOTHING: Owned = MappingProxyType({})


class TopicPartitions(Protocol):
    """
    How messages name the partitions of a topic.
    """

    topic_id: Uuid
    partitions: list[int]


def assignment_of(named: Iterable[TopicPartitions]) -> Assignment:
    """
    The partitions that a message names; a topic named twice has those of both.
    """
    found: dict[Uuid, frozenset[int]] = {}
    for topic in named:
        found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return {topic_id: partitions for topic_id, partitions in found.items() if partitions}


def overlap(some: Assignment, owned: Owned) -> bool:
    """
    Whether a partition is in both.
    """
    return any(not partitions.isdisjoint(owned.get(topic_id, ())) for topic_id, partitions in some.items())


def is_all_of(some: Assignment, owned: Owned) -> bool:
    """
    Whether both are the same partitions.
    """
    return some.keys() == owned.keys() and all(
        partitions == owned[topic_id].keys() for topic_id, partitions in some.items()
    )


def within(some: Assignment, owned: Owned) -> bool:
    """
    Whether all of the first are in the second.
    """
    return all(partitions <= owned.get(topic_id, {}).keys() for topic_id, partitions in some.items())
