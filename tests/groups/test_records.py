"""
Rows in `__consumer_offsets` in Kafka's format.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.groups.records import Row, decoded, encoded, group_of
from kgateway.messages.stored.consumer_group import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kgateway.messages.stored.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kgateway.messages.unserved.share_group_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from kgateway.wire.codec import encode
from kgateway.wire.errors import Malformed
from kgateway.wire.uuids import ONE
from tests.groups.group_world import value

KEY = OffsetCommitKey(group="g", topic="t", partition=7)
KEY_BYTES = bytes.fromhex("0001 000167 000174 00000007")
CLASSIC = GroupMetadataValue(protocol_type="consumer", generation=3, protocol=None, leader=None, members=[])

# Written by Kafka 4.3 (tests/kafka/test_groups.py lets it read these).
WRITTEN = {
    "an offset": (
        Row(KEY, OffsetCommitValue(offset=42, leader_epoch=5, metadata="m", commit_timestamp=9)),
        KEY_BYTES,
        bytes.fromhex("0004 000000000000002a 00000005 026d 0000000000000009 00"),
    ),
    "an offset of a topic with an id": (
        Row(KEY, OffsetCommitValue(offset=42, metadata="", commit_timestamp=9, topic_id=ONE)),
        KEY_BYTES,
        bytes.fromhex("0004 000000000000002a ffffffff 01 0000000000000009 01 00 10") + ONE,
    ),
    "an offset with a time of its own to expire": (
        Row(KEY, OffsetCommitValue(offset=42, metadata="m", commit_timestamp=9, expire_timestamp=11)),
        KEY_BYTES,
        bytes.fromhex("0001 000000000000002a 00016d 0000000000000009 000000000000000b"),
    ),
    "no offset": (Row(KEY, None), KEY_BYTES, None),
    "a classic group": (
        Row(GroupMetadataKey(group="g"), CLASSIC),
        bytes.fromhex("0002 000167"),
        bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000003 ffff ffff ffffffffffffffff 00000000"),
    ),
    "a consumer group": (
        Row(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=4)),
        bytes.fromhex("0003 000167"),
        bytes.fromhex("0000 00000004 00"),
    ),
}


@pytest.mark.parametrize(("row", "key", "value"), WRITTEN.values(), ids=WRITTEN)
def test_rows_have_kafkas_bytes(row: Row, key: bytes, value: bytes | None) -> None:
    """
    A row is written in the version of Kafka 4.3, and read back unchanged.
    """
    assert encoded(row) == (key, value)
    assert decoded(key, value) == row


@pytest.mark.parametrize("version", range(5))
def test_old_versions_of_offsets_are_read(version: int) -> None:
    """
    Kafka wrote them under two kinds of keys.
    """
    written = version.to_bytes(2, "big") + encode(value(42), version)
    for table in (OffsetCommitKey, LegacyOffsetCommitKey):
        key = table.__spec__.key.to_bytes(2, "big") + encode(table(group="g", topic="t", partition=7), 0)  # type: ignore[union-attr]
        assert decoded(key, written) == Row(KEY, value(42))


@pytest.mark.parametrize("version", range(5))
def test_old_versions_of_groups_are_read(version: int) -> None:
    written = version.to_bytes(2, "big") + encode(CLASSIC, version)
    assert decoded(bytes.fromhex("0002 000167"), written) == Row(GroupMetadataKey(group="g"), CLASSIC)


def test_unknown_kinds_and_versions_are_ignored() -> None:
    """
    Records of a later Kafka decode to nothing.
    """
    share = Row(ShareGroupMetadataKey(group_id="g"), ShareGroupMetadataValue(epoch=1, metadata_hash=2))
    assert decoded(*encoded(share)) is None
    assert decoded(b"\xff\xff", b"\0\0") is None
    assert decoded(KEY_BYTES, b"\0\x05" + bytes(30)) is None


@given(st.binary(max_size=40), st.none() | st.binary(max_size=60))
def test_other_bytes_are_malformed(rest: bytes, value: bytes | None) -> None:
    """
    Nothing else is raised.
    """
    for kind in range(20):
        with suppress(Malformed):
            decoded(kind.to_bytes(2, "big") + rest, value)


def test_trailing_bytes_are_malformed() -> None:
    """
    They may be in key or value.
    """
    key, written = encoded(Row(KEY, value(42)))
    assert written
    for damaged in ((key + b"\0", written), (key, written + b"\0")):
        with pytest.raises(Malformed, match="1 bytes are left over"):
            decoded(*damaged)


def test_keys_name_their_group() -> None:
    """
    The id may be empty.
    """
    assert (
        group_of(KEY)
        == group_of(GroupMetadataKey(group="g"))
        == group_of(ConsumerGroupMetadataKey(group_id="g"))
        == "g"
    )
    assert group_of(ConsumerGroupMetadataKey(group_id="")) == ""
