"""
Transactions as Kafka has them in `__transaction_state`.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kgateway.transactions.coding import by_topic, decoded, encoded, tombstone
from kgateway.transactions.state import LAST_EPOCH, Place, State, Transaction
from kgateway.wire.codec import encode
from kgateway.wire.malformed import Malformed
from tests.transactions.transacting import EACH, OLD, T0, T1, transaction

KEY = bytes.fromhex("0000 000161")
BEGUN, PREPARED, COMPLETE = 0x01A204E87D5A, 0x01A204E87D5B, 0x01A204E87D5C  # when it was, by the clock of that machine


def _a(**fields: Any) -> Transaction:
    return transaction(**{"producer_id": 0, "previous_id": 0, "timeout_ms": 60_000} | fields)


# What Kafka 4.3.1 wrote as its clients asked it for this, byte for byte.
WRITTEN = {
    "begun": (
        _a(epoch=LAST_EPOCH - 1, updated_ms=0x01A204E87C87, client_version=OLD),
        "0001 0000000000000000 7ffd 0000ea60 00 00 000001a204e87c87 ffffffffffffffff 01 0008 0000000000000000",
    ),
    "open": (
        _a(
            epoch=LAST_EPOCH,
            state=State.ONGOING,
            places=frozenset({T0}),
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
            state=State.PREPARE_COMMIT,
            places=frozenset({T0}),
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
            state=State.COMPLETE_COMMIT,
            updated_ms=COMPLETE,
            started_ms=BEGUN,
            client_version=EACH,
        ),
        "0001 0000000000000001 0000 0000ea60 04 01 000001a204e87d5c 000001a204e87d5a02 0008 0000000000000000 0202 0002",
    ),
}
# And with partitions in an order of its own.
UNSORTED = bytes.fromhex(
    "0001 0000000000000000 0001 0000ea60 01 03 0274 03 00000001 00000000 00"
    "13 5f5f636f6e73756d65725f6f666673657473 02 00000003 00 000001a204d40fdc 000001a204d40fc8"
    "01 0008 0000000000000000"
)


@pytest.mark.parametrize(("written", "value"), WRITTEN.values(), ids=WRITTEN)
def test_rows_are_what_kafka_writes(written: Transaction, value: str) -> None:
    """
    A transaction is written as Kafka 4.3.1 does, and read back as it was.
    """
    assert encoded(written) == (KEY, bytes.fromhex(value))
    assert decoded(KEY, bytes.fromhex(value)) == written


def test_partitions_in_any_order() -> None:
    """
    Kafka's partitions have none; ours are sorted.
    """
    found = decoded(KEY, UNSORTED)
    assert found
    assert found.places == {T0, T1, Place("__consumer_offsets", 3)}
    assert (found.state, found.epoch, found.client_version) == (State.ONGOING, 1, OLD)
    assert [(one.topic, one.partition_ids) for one in by_topic(found.places)] == [
        ("__consumer_offsets", [3]),
        ("t", [0, 1]),
    ]
    _, value = encoded(found)
    assert value
    assert sorted(value) == sorted(UNSORTED)


def test_tombstone() -> None:
    """
    An id that is forgotten has no value.
    """
    assert tombstone("a") == (KEY, None)


def test_first_version() -> None:
    """
    What brokers wrote before transaction.version was a feature is read, too.
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
    expected = _a(producer_id=5, previous_id=-1, state=State.ONGOING, places=frozenset({T0}), started_ms=4)
    assert found == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\1" + KEY[2:], bytes.fromhex(WRITTEN["begun"][1])),
        (KEY, b"\0\2" + bytes.fromhex(WRITTEN["begun"][1])[2:]),
    ],
)
def test_unknown_kinds_and_versions(key: bytes, value: bytes) -> None:
    """
    What a later Kafka wrote is nothing here.
    """
    assert decoded(key, value) is None


@pytest.mark.parametrize("status", [-1, 6, 7, 99])
def test_unknown_states(status: int) -> None:
    """
    Nor is a state that is never written.
    """
    _, value = encoded(_a(epoch=0))
    assert value
    assert decoded(KEY, value[:16] + status.to_bytes(1, "big", signed=True) + value[17:]) is None


@given(st.binary(max_size=20), st.binary(max_size=80))
def test_anything_else_is_malformed(key: bytes, value: bytes) -> None:
    """
    Bytes that are nothing are told as such, and nothing else happens.
    """
    for version in range(3):
        with suppress(Malformed):
            decoded(b"\0\0" + key, version.to_bytes(2, "big") + value)
        with suppress(Malformed):
            decoded(KEY, version.to_bytes(2, "big") + value)


def test_bytes_left_over() -> None:
    """
    A key or value with more behind it is none.
    """
    _, value = encoded(_a(epoch=0))
    assert value
    for key, wrong in ((KEY + b"\0", value), (KEY, value + b"\0")):
        with pytest.raises(Malformed, match="1 bytes are left over"):
            decoded(key, wrong)


def test_long_ids() -> None:
    """
    An id of any length is a key.
    """
    key, _ = tombstone("é" * 1_000)
    assert key == b"\0\0" + encode(TransactionLogKey(transactional_id="é" * 1_000), 0)
