"""
Rows as the records of `__consumer_offsets`, in Kafka's own form.

The key of a record begins with an i16, the kind of the row; the value with an i16, the version of its table.
"""

from kgateway.coordinating.prefixed import after_prefix, prefix_of, with_prefix
from kgateway.groups.rows import Row
from kgateway.interfaces import KeyValue
from kgateway.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kgateway.messages.stored.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kgateway.wire.schema import Message

NEVER = -1  # an offset expires by the retention of the gateway

_KEY_VERSION = 0  # there is no other
_TABLES: tuple[tuple[type[Message], type[Message]], ...] = (
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
_BY_KIND = {key.__spec__.key: (key, value) for key, value in _TABLES}
# What early brokers wrote of offsets has the same fields.
_BY_KIND[LegacyOffsetCommitKey.__spec__.key] = OffsetCommitKey, OffsetCommitValue

# The versions that Kafka 4.3 writes, where that is not the first.
_WRITTEN = {OffsetCommitValue: 4, GroupMetadataValue: 3}
_WITH_EXPIRY = 1  # of an offset that has a time of its own to expire


def encoded(row: Row) -> KeyValue:
    """
    The row as a record; a row without a value as a tombstone.
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
    The row that a record is; `None` where it is of a kind or version that is not known here. Malformed where it is
    nothing at all.
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
    """
    The group that a row is about.
    """
    group_id: str = getattr(key, "group_id" if hasattr(key, "group_id") else "group")
    return group_id
