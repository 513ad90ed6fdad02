"""
Transactions in `__transaction_state` in Kafka's format.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.records import by_topic, decoded, encoded, tombstone
from kgateway.transactions.state import LAST_EPOCH, Transaction, TransactionState
from kgateway.wire.codec import encode
from kgateway.wire.errors import Malformed
from tests.transactions.transaction_world import EACH, OLD, T0, T1, transaction

KEY = bytes.fromhex("0000 000161")
BEGUN, PREPARED, COMPLETE = 0x01A204E87D5A, 0x01A204E87D5B, 0x01A204E87D5C  # the clock of that machine


def _a(**fields: Any) -> Transaction:
    return transaction(**{"producer_id": 0, "previous_id": 0, "timeout_ms": 60_000} | fields)


# Written by Kafka 4.3.1 when its clients asked for this.
WRITTEN = {
    "begun": (
        _a(epoch=LAST_EPOCH - 1, updated_ms=0x01A204E87C87, client_version=OLD),
        "0001 0000000000000000 7ffd 0000ea60 00 00 000001a204e87c87 ffffffffffffffff 01 0008 0000000000000000",
    ),
    "open": (
        _a(
            epoch=LAST_EPOCH,
            state=TransactionState.ONGOING,
            partitions=frozenset({T0}),
            updated_ms=BEGUN,
            started_ms=BEGUN,
            client_version=EACH,
        ),
        "0001 0000000000000000 7ffe 0000ea60 01 02 0274 02 00000000 00 000001a204e87d5a 000001a204e87d5a"
        "02 0008 0000000000000000 0202 0002",
    ),
    "about to commit, with another producer id next": (
        _a(
            epoch=LAST_EPOCH + 1,
            next_id=1,
            state=TransactionState.PREPARE_COMMIT,
            partitions=frozenset({T0}),
            updated_ms=PREPARED,
            started_ms=BEGUN,
            client_version=EACH,
        ),
        "0001 0000000000000000 7fff 0000ea60 02 02 0274 02 00000000 00 000001a204e87d5b 000001a204e87d5a"
        "03 0008 0000000000000000 0108 0000000000000001 0202 0002",
    ),
    "committed": (
        _a(
            producer_id=1,
            epoch=0,
            state=TransactionState.COMPLETE_COMMIT,
            updated_ms=COMPLETE,
            started_ms=BEGUN,
            client_version=EACH,
        ),
        "0001 0000000000000001 0000 0000ea60 04 01 000001a204e87d5c 000001a204e87d5a02 0008 0000000000000000 0202 0002",
    ),
}
# Partitions are in an order of their own.
UNSORTED = bytes.fromhex(
    "0001 0000000000000000 0001 0000ea60 01 03 0274 03 00000001 00000000 00"
    "13 5f5f636f6e73756d65725f6f666673657473 02 00000003 00 000001a204d40fdc 000001a204d40fc8"
    "01 0008 0000000000000000"
)


@pytest.mark.parametrize(("written", "value"), WRITTEN.values(), ids=WRITTEN)
def test_rows_have_kafkas_bytes(written: Transaction, value: str) -> None:
    """
    A transaction is written as by Kafka 4.3.1, and read back unchanged.
    """
    assert encoded(written) == (KEY, bytes.fromhex(value))
    assert decoded(KEY, bytes.fromhex(value)) == written


def test_partitions_may_have_any_order() -> None:
    """
    Kafka does not sort them; we do.
    """
    found = decoded(KEY, UNSORTED)
    assert found
    assert found.partitions == {T0, T1, TopicPartition("__consumer_offsets", 3)}
    assert (found.state, found.epoch, found.client_version) == (TransactionState.ONGOING, 1, OLD)
    assert [(one.topic, one.partition_ids) for one in by_topic(found.partitions)] == [
        ("__consumer_offsets", [3]),
        ("t", [0, 1]),
    ]
    _, value = encoded(found)
    assert value
    assert sorted(value) == sorted(UNSORTED)


def test_a_forgotten_id_is_a_tombstone() -> None:
    assert tombstone("a") == (KEY, None)


def test_version_0_is_read() -> None:
    """
    It is that of brokers before the feature transaction.version.
    """
    before = TransactionLogValue(
        producer_id=5,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[TransactionLogValue.TransactionPartition(topic="t", partition_ids=[0])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
    )
    found = decoded(KEY, b"\0\0" + encode(before, 0))
    expected = _a(
        producer_id=5, previous_id=-1, state=TransactionState.ONGOING, partitions=frozenset({T0}), started_ms=4
    )
    assert found == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\1" + KEY[2:], bytes.fromhex(WRITTEN["begun"][1])),
        (KEY, b"\0\2" + bytes.fromhex(WRITTEN["begun"][1])[2:]),
    ],
)
def test_unknown_kinds_and_versions_are_ignored(key: bytes, value: bytes) -> None:
    """
    Records of a later Kafka decode to nothing.
    """
    assert decoded(key, value) is None


@pytest.mark.parametrize("status", [-1, 6, 7, 99])
def test_unknown_states_are_ignored(status: int) -> None:
    """
    They are never written.
    """
    _, value = encoded(_a(epoch=0))
    assert value
    assert decoded(KEY, value[:16] + status.to_bytes(1, "big", signed=True) + value[17:]) is None


@given(st.binary(max_size=20), st.binary(max_size=80))
def test_other_bytes_are_malformed(key: bytes, value: bytes) -> None:
    """
    Nothing else is raised.
    """
    for version in range(3):
        with suppress(Malformed):
            decoded(b"\0\0" + key, version.to_bytes(2, "big") + value)
        with suppress(Malformed):
            decoded(KEY, version.to_bytes(2, "big") + value)


def test_trailing_bytes_are_malformed() -> None:
    """
    They may be in key or value.
    """
    _, value = encoded(_a(epoch=0))
    assert value
    for key, wrong in ((KEY + b"\0", value), (KEY, value + b"\0")):
        with pytest.raises(Malformed, match="1 bytes are left over"):
            decoded(key, wrong)


def test_ids_may_have_any_length() -> None:
    key, _ = tombstone("é" * 1_000)
    assert key == b"\0\0" + encode(TransactionLogKey(transactional_id="é" * 1_000), 0)
