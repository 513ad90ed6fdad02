"""
The state of groups as rows, each the key and value of a record of `__consumer_offsets`, in Kafka's own form.

The key of a record begins with an i16, the kind of the row; the value with an i16, the version of its table.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.coordination.record_prefix import after_prefix, prefix_of, with_prefix
from kgateway.interfaces import KeyValue
from kgateway.messages.stored import consumer_group as stored
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kgateway.messages.stored.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kgateway.wire.schema import Message


class Row(NamedTuple):
    """
    A key and its value from now on; `None` deletes it.
    """

    key: Message
    value: Message | None


# Writes rows immediately, as one batch. Returns `None` if they are committed by then, else a Deferred that fires when
# they are or fails with a KafkaError; raises a KafkaError if they cannot be written at all.
Write = Callable[[Sequence[Row]], Deferred[None] | None]


NEVER = -1  # no expiry time of its own: the gateway's retention holds

_KEY_VERSION = 0  # there is no other
_TABLES: tuple[tuple[type[Message], type[Message]], ...] = (
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (stored.ConsumerGroupMetadataKey, stored.ConsumerGroupMetadataValue),
    (stored.ConsumerGroupPartitionMetadataKey, stored.ConsumerGroupPartitionMetadataValue),
    (stored.ConsumerGroupMemberMetadataKey, stored.ConsumerGroupMemberMetadataValue),
    (stored.ConsumerGroupTargetAssignmentMetadataKey, stored.ConsumerGroupTargetAssignmentMetadataValue),
    (stored.ConsumerGroupTargetAssignmentMemberKey, stored.ConsumerGroupTargetAssignmentMemberValue),
    (stored.ConsumerGroupCurrentMemberAssignmentKey, stored.ConsumerGroupCurrentMemberAssignmentValue),
    (stored.ConsumerGroupRegularExpressionKey, stored.ConsumerGroupRegularExpressionValue),
)
_BY_KIND = {key.__spec__.key: (key, value) for key, value in _TABLES}
# The offsets of early brokers have the same fields.
_BY_KIND[LegacyOffsetCommitKey.__spec__.key] = OffsetCommitKey, OffsetCommitValue

# The versions that Kafka 4.3 writes, if that is not the first.
_WRITTEN = {OffsetCommitValue: 4, GroupMetadataValue: 3}
_WITH_EXPIRY = 1  # of an offset with an expiry time of its own


def encoded(row: Row) -> KeyValue:
    """
    The row as a record. Without a value it is a tombstone.
    """
    key, value = row
    kind = key.__spec__.key
    assert kind is not None, f"{type(key).__name__} is the key of no row"
    return with_prefix(kind, key, _KEY_VERSION), None if value is None else _value(value)


def _value(value: Message) -> bytes:
    version = _WRITTEN.get(type(value), 0)
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != NEVER:
        version = _WITH_EXPIRY
    return with_prefix(version, value, version)


def decoded(key: bytes, value: bytes | None) -> Row | None:
    """
    The row in a record; `None` if its kind or version is not known here. Malformed if it is not a row at all.
    """
    tables = _BY_KIND.get(prefix_of(key))
    if tables is None:
        return None
    key_table, value_table = tables
    found = after_prefix(key_table, _KEY_VERSION, key)
    if value is None:
        return Row(found, None)
    version = prefix_of(value)
    if version not in value_table.__spec__.versions:
        return None
    return Row(found, after_prefix(value_table, version, value))


def group_of(key: Message) -> str:
    group_id: str = getattr(key, "group_id" if hasattr(key, "group_id") else "group")
    return group_id
