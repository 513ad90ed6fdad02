"""
Our records of groups and offsets, read by Kafka's coordinator and by the formatters of its console consumer.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.groups.records import Row, decoded, encoded
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.uuids import Uuid
from tests.groups.test_records import WRITTEN
from tests.kafka.batches import MAX_I32, MAX_I64
from tests.kafka.oracle import Java

pytestmark = pytest.mark.kafka

TEXTS = st.text(max_size=20)
I32, I64 = st.integers(-1, MAX_I32), st.integers(-1, MAX_I64)
OFFSETS = st.builds(
    Row,
    st.builds(OffsetCommitKey, group=TEXTS, topic=TEXTS, partition=I32),
    st.none()
    | st.builds(OffsetCommitValue, offset=I64, leader_epoch=I32, metadata=TEXTS, commit_timestamp=I64)
    | st.builds(
        OffsetCommitValue,
        offset=I64,
        metadata=TEXTS,
        commit_timestamp=I64,
        topic_id=st.binary(min_size=16, max_size=16).map(Uuid),
    )
    | st.builds(
        OffsetCommitValue, offset=I64, metadata=TEXTS, commit_timestamp=I64, expire_timestamp=st.integers(0, MAX_I64)
    ),
)
MEMBERS = st.builds(
    MemberMetadata,
    member_id=TEXTS,
    group_instance_id=st.none() | TEXTS,
    client_id=TEXTS,
    client_host=TEXTS,
    rebalance_timeout=I32,
    session_timeout=I32,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
GROUPS = st.builds(
    Row,
    st.builds(GroupMetadataKey, group=TEXTS),
    st.none()
    | st.builds(
        GroupMetadataValue,
        protocol_type=TEXTS,
        generation=I32,
        protocol=st.none() | TEXTS,
        leader=st.none() | TEXTS,
        current_state_timestamp=I64,
        members=st.lists(MEMBERS, max_size=3),
    ),
)


class Coordinator:
    """
    Kafka's coordinator, as far as it reads and writes records.
    """

    def __init__(self) -> None:
        self._java = Java("Groups.java", "new")

    def read(self, key: bytes, value: bytes | None) -> tuple[tuple[bytes, bytes | None], Any, Any]:
        """
        The record as Kafka writes it again, and the output of the formatters of offsets and of groups.
        """
        answer = self._java.ask(f"{key.hex()} {'-' if value is None else value.hex()}")
        assert answer, "the Java process has ended"
        assert not answer.startswith("!"), answer
        again, value_again, shown = answer.split(" ", 2)
        offset, group = json.loads(shown)
        return (bytes.fromhex(again), None if value_again == "-" else bytes.fromhex(value_again)), offset, group

    def close(self) -> None:
        self._java.close()


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    started = Coordinator()
    yield started
    started.close()


@pytest.mark.parametrize(("row", "key", "value"), WRITTEN.values(), ids=WRITTEN)
def test_golden_bytes_equal_kafkas(row: Row, key: bytes, value: bytes | None, coordinator: Coordinator) -> None:
    """
    Kafka writes the bytes that our tests store.
    """
    assert coordinator.read(key, value)[0] == (key, value)


def test_kafka_reads_offsets(coordinator: Coordinator) -> None:
    """
    Kafka's coordinator and we read the same in our offsets, and it writes the same bytes; its formatter shows them.
    """

    @given(OFFSETS)
    def check(row: Row) -> None:
        record = encoded(row)
        assert decoded(*record) == row
        again, offset, group = coordinator.read(*record)
        assert again == record
        assert group is None
        shown = {"group": row.key.group, "topic": row.key.topic, "partition": row.key.partition}  # type: ignore[attr-defined]
        assert offset["key"] == {"type": 1, "data": shown}
        if isinstance(row.value, OffsetCommitValue):
            told = offset["value"]["data"]
            assert (told["offset"], told["metadata"]) == (row.value.offset, row.value.metadata)

    check()


def test_kafka_reads_groups(coordinator: Coordinator) -> None:
    """
    Kafka's coordinator and its formatter read classic groups as well.
    """

    @given(GROUPS)
    def check(row: Row) -> None:
        record = encoded(row)
        assert decoded(*record) == row
        again, offset, group = coordinator.read(*record)
        assert again == record
        assert offset is None
        if isinstance(row.value, GroupMetadataValue):
            told = group["value"]["data"]
            assert (group["value"]["version"], told["generation"]) == (3, row.value.generation)
            assert [one["memberId"] for one in told["members"]] == [one.member_id for one in row.value.members]

    check()
