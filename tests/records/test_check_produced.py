"""
What a producer may claim in a batch header.
"""

import pytest

from kgateway.records.batch import check_produced, read_batch
from kgateway.records.compression import Codec
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.crc_batches import sealed, three
from tests.records.values import JAVA_BATCHES

# What LogValidator and UnifiedLog of Kafka 4.3.1 refuse. An unknown codec is an IllegalArgumentException there, which
# the client sees as UNKNOWN_SERVER_ERROR; here it has a code of its own.
REFUSED = {
    "INVALID_RECORD: the batch declares 0 records": {"records_count": 0},
    "INVALID_RECORD: the batch declares -1 records": {"records_count": -1},
    "INVALID_RECORD: 3 records end at offset delta 2, not 5": {"last_offset_delta": 5},
    "INVALID_RECORD: 3 records end at offset delta 2, not -1": {"last_offset_delta": -1},
    "INVALID_RECORD: 3 records end at offset delta 2, not 1": {"last_offset_delta": 1},
    "INVALID_RECORD: 4 records end at offset delta 3, not 2": {"records_count": 4},
    "INVALID_RECORD: 2147483647 records do not fit into 57 bytes": {
        "records_count": (1 << 31) - 1,
        "last_offset_delta": (1 << 31) - 2,
    },
    "INVALID_RECORD: only the broker may write control batches": {"attributes": 0x20},
    "INVALID_RECORD: producer 5 sends the sequence number -1": {"producer_id": 5, "producer_epoch": 0},
    "INVALID_RECORD: producer 0 sends the sequence number -2": {"producer_id": 0, "base_sequence": -2},
    "INVALID_RECORD: a batch must have base offset 0, not 7": {"base_offset": 7},
    "UNSUPPORTED_COMPRESSION_TYPE: there is no codec 5": {"attributes": 5},
    "UNSUPPORTED_COMPRESSION_TYPE: there is no codec 7": {"attributes": 7},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_impossible_claims_are_refused(reason: str) -> None:
    """
    A contradictory batch, or one with claims that no producer may make, is refused with a reason.
    """
    with pytest.raises(KafkaError) as e:
        check_produced(sealed(three(), **REFUSED[reason]))
    assert str(e.value) == reason


# What they accept, odd as some of it is.
TAKEN: list[dict[str, int]] = [
    {},
    {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0},
    {"producer_id": 5, "producer_epoch": -1, "base_sequence": 0},
    {"producer_id": -1, "producer_epoch": 3, "base_sequence": 7},
    {"producer_id": -5, "base_sequence": -7},
    {"attributes": 0x10},  # transactional without a producer id
    {"attributes": 0x08},  # LogAppendTime
    {"attributes": 0x40},
    {"attributes": 0x7F80},
    {"attributes": 4},
    {"max_timestamp": 5},
    {"max_timestamp": -1},
    {"base_timestamp": -7},
    {"partition_leader_epoch": 99},
]


@pytest.mark.parametrize("changes", TAKEN, ids=str)
def test_claims_that_kafka_accepts_are_accepted(changes: dict[str, int]) -> None:
    check_produced(sealed(three(), **changes))


@pytest.mark.parametrize("codec", Codec)
def test_java_batches_are_accepted(codec: Codec) -> None:
    """
    With one bit changed they are refused.
    """
    data = bytearray(JAVA_BATCHES[codec])
    check_produced(read_batch(data))
    data[-1] ^= 1
    with pytest.raises(KafkaError) as e:
        check_produced(read_batch(data))
    assert e.value.code is ErrorCode.CORRUPT_MESSAGE
    assert str(e.value) == "CORRUPT_MESSAGE: the CRC of the batch does not match its contents"
