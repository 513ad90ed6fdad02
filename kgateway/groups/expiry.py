"""
Which offsets are too old (KIP-211), and which groups are nothing any more.

The offsets of a group age from when it became empty; while it has members, those of topics that no member reads age
from their commit. Who only commits and never joins is no member: such offsets age from their commit, too.
"""

from collections.abc import Iterator, Mapping

from kgateway.cluster.view import Topic
from kgateway.groups.coding import NEVER
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import GroupOffsets, Place, is_of
from kgateway.messages.stored.offset_commit import OffsetCommitValue

CONSUMERS = "consumer"  # the protocol type whose subscriptions can be read
_STABLE = "Stable"


def too_old(group: Group, offsets: GroupOffsets, now_ms: int, retention_ms: int) -> Iterator[Place]:
    """
    The places whose offsets have expired.
    """
    if not _age(group):
        return
    empty_since_ms = group.empty_since_ms if _by_emptiness(group) else None
    for topic, partitions in offsets.by_topic.items():
        if group.reads(topic):
            continue
        for partition, committed in partitions.items():
            place = Place(topic, partition)
            if _expired(committed, empty_since_ms, now_ms, retention_ms) and not offsets.is_unstable(place):
                yield place


def left_behind(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> Iterator[Place]:
    """
    The places whose topics are not there any more.
    """
    for place, committed in offsets:
        topic = topics.get(place.topic)
        if (topic is None or not is_of(committed, topic.id)) and not offsets.is_unstable(place):
            yield place


def _age(group: Group) -> bool:
    """
    Whether any of its offsets may expire now: of a classic group with members, the topics it reads must be known.
    """
    if group.type is GroupType.CONSUMER or not group.protocol_type or group.is_empty:
        return True
    return group.protocol_type == CONSUMERS and group.state == _STABLE


def _by_emptiness(group: Group) -> bool:
    return group.type is GroupType.CLASSIC and bool(group.protocol_type) and group.is_empty


def _expired(committed: OffsetCommitValue, empty_since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_timestamp != NEVER:  # a client of old has said how long to keep it
        return now_ms >= committed.expire_timestamp
    since_ms = committed.commit_timestamp if empty_since_ms is None else empty_since_ms
    return now_ms - since_ms >= retention_ms
