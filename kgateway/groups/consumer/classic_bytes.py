"""
What classic consumers say in bytes: their subscriptions and assignments, by topic ids.
"""

from typing import TypeVar

from kgateway.cluster.view import ClusterView
from kgateway.groups.consumer.assignment import Assignment, Owned
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.wire.codec import decoder, encode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.schema import Message

M = TypeVar("M", bound=Message)
_VERSION_BYTES = 2
_NEWEST = 3


def version_of(said: bytes) -> int:
    """
    The version that the bytes begin with; of a newer one than we know, the newest we know is a part.
    """
    version = int.from_bytes(said[:_VERSION_BYTES], "big", signed=True)
    if len(said) < _VERSION_BYTES or version < 0:
        raise _unreadable(f"it begins with {bytes(said[:_VERSION_BYTES])!r}, which is no version")
    return min(version, _NEWEST)


def subscription_from(said: bytes) -> ConsumerProtocolSubscription:
    """
    A KafkaError where it cannot be read.
    """
    return _read(ConsumerProtocolSubscription, said)


def owned_by(subscription: ConsumerProtocolSubscription, view: ClusterView) -> Assignment:
    """
    What the member says that it owns; eager members and old ones let go all before they join.
    """
    topics = view.topics
    return {
        topics[owned.topic].id: frozenset(owned.partitions)
        for owned in subscription.owned_partitions
        if owned.topic in topics and owned.partitions
    }


def assignment_from(said: bytes, view: ClusterView) -> Assignment:
    """
    A KafkaError where it cannot be read, or says what is for the members' own assignor and would be lost.
    """
    if not said:
        return {}
    read = _read(ConsumerProtocolAssignment, said)
    if read.user_data:
        raise _unreadable("it has data of an assignor of the members' own")
    topics = view.topics
    return {
        topics[given.topic].id: frozenset(given.partitions)
        for given in read.assigned_partitions
        if given.topic in topics and given.partitions
    }


def assignment_bytes(assigned: Owned | Assignment, view: ClusterView, version: int) -> bytes:
    """
    As a classic consumer is told it.
    """
    topics = view.topics_by_id
    each = ConsumerProtocolAssignment.AssignedPartition
    given = [
        each(topic=topics[topic_id].name, partitions=sorted(assigned[topic_id]))
        for topic_id in sorted(assigned)
        if topic_id in topics
    ]
    said = encode(ConsumerProtocolAssignment(assigned_partitions=given, user_data=None), version)
    return version.to_bytes(_VERSION_BYTES, "big") + said


def _read(message: type[M], said: bytes) -> M:
    try:
        read, _ = decoder(message, version_of(said))(said, _VERSION_BYTES)
    except Malformed as error:
        raise _unreadable(str(error)) from None
    return read


def _unreadable(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"what a consumer says cannot be read: {reason}")
