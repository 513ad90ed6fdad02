"""
The assignor `range`: every subscriber of a topic reads a run of neighbouring partitions.

Members are taken in one order for all topics, static ones first, by instance id: so partitions of the same number, of
topics with the same count and subscribers, go to the same member, and a static member that comes back under a new
member id changes nothing.
"""

from collections.abc import Mapping

from kgateway.groups.assignors.assignment import Assignment, Subscriber
from kgateway.wire.uuids import Uuid


def assign_ranges(members: Mapping[str, Subscriber], partition_counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    assigned: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, readers in _subscribers_by_topic(members).items():
        least, extra = divmod(partition_counts[topic_id], len(readers))
        begin = 0
        for rank, member_id in enumerate(readers):
            end = begin + least + (rank < extra)
            if end == begin:
                break
            assigned[member_id][topic_id] = _run(begin, end, members[member_id].current.get(topic_id))
            begin = end
    return dict(assigned)


def _subscribers_by_topic(members: Mapping[str, Subscriber]) -> dict[Uuid, list[str]]:
    readers: dict[Uuid, list[str]] = {}
    for member_id in sorted(members, key=lambda member_id: _rank(member_id, members[member_id].instance_id)):
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    return readers


def _rank(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return (True, member_id) if instance_id is None else (False, instance_id)


def _run(begin: int, end: int, current: frozenset[int] | None) -> frozenset[int]:
    """
    The partitions from `begin` up to `end`, or the current set itself if it is the same.
    """
    run = frozenset(range(begin, end))
    return current if current == run else run
