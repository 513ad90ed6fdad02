"""
Produced batches, judged by us and by Kafka's log, which accepts or refuses them.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, Batch, check_produced, placed
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.kafka.batches import MAX_I16, MAX_I32, MAX_I64, PRODUCERS, Kafka, opened
from tests.records.crc_batches import sealed, three
from tests.records.values import batch_of, record_lists

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("codec", Codec)
def test_log_stores_what_we_store(codec: Codec, kafka: Kafka) -> None:
    """
    Kafka's log accepts our batch from a producer, and stores the same bytes as ours.
    """

    @given(rows=record_lists(min_size=1), producer=st.just({}) | PRODUCERS, base_offset=st.integers(0, MAX_I32))
    def check(rows: list[Record], producer: dict[str, Any], base_offset: int) -> None:
        batch = batch_of(rows, codec=codec, **producer)
        check_produced(batch)
        answer = kafka.append(batch, base_offset=base_offset, leader_epoch=5, timestamp_type="CreateTime")
        assert answer == (ErrorCode.NONE, b"".join(placed(batch, base_offset, 5)))

    check()


def claims(codec: Codec) -> Iterator[dict[str, int]]:
    """
    True and false headers of a batch of three records.
    """
    longs = [-MAX_I64 - 1, -7, -1, 0, 1, 5, 1 << 60, MAX_I64]
    ints = [-MAX_I32 - 1, -2, -1, 0, 1, 2, 4, 5, MAX_I32]
    for name in ("base_offset", "base_timestamp", "max_timestamp"):
        yield from ({name: value} for value in longs)
    for name in ("partition_leader_epoch", "records_count", "last_offset_delta"):
        yield from ({name: value} for value in ints)
    yield from ({"records_count": count, "last_offset_delta": count - 1} for count in ints[1:])
    yield from ({"attributes": number} for number in range(8))
    several = [-MAX_I16 - 1, 0x7F80, LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT]
    yield from ({"attributes": codec | bits} for bits in [*(1 << n for n in range(3, 15)), *several])
    for number, epoch, sequence in product((-5, -1, 0, MAX_I64), (-2, -1, 0, MAX_I16), (-2, -1, 0, MAX_I32)):
        yield {"producer_id": number, "producer_epoch": epoch, "base_sequence": sequence}


def answered(batch: Batch) -> ErrorCode:
    """
    The code with which `check_produced` makes us answer.
    """
    try:
        check_produced(batch)
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.NONE


def meant(theirs: ErrorCode, batch: Batch) -> ErrorCode:
    """
    The code that we should answer if Kafka answers this one: the same, except for deliberate differences.
    """
    header = batch.header
    match theirs:
        case ErrorCode.UNKNOWN_SERVER_ERROR if header.attributes & 7 > Codec.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE  # Kafka does not expect an unknown codec
        case ErrorCode.UNKNOWN_SERVER_ERROR if not opened(batch):
            return ErrorCode.NONE  # Kafka fails to decompress; we check the header
        case ErrorCode.INVALID_RECORD if header.attributes & 7 == Codec.NONE and 7 * header.records_count > header.size:
            return theirs  # a batch cannot have this many records
        case ErrorCode.INVALID_RECORD if header.records_count == header.last_offset_delta + 1 > 0 and not opened(batch):
            return ErrorCode.NONE  # Kafka finds another number of records than declared; we check the header
        case ErrorCode.INVALID_TIMESTAMP if header.attributes & LOG_APPEND_TIME_BIT:
            return ErrorCode.NONE  # with LogAppendTime the topic refuses; topics are unknown here
        case ErrorCode.INVALID_PRODUCER_EPOCH if header.producer_epoch < -1:
            return ErrorCode.NONE  # Kafka refuses an unknown producer; producers are unknown here
        case _:
            return theirs


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_headers_are_judged_as_by_kafkas_log(codec: Codec, timestamp_type: str, kafka: Kafka) -> None:
    """
    Whatever a header with a valid CRC claims, Kafka's log and we accept it or refuse it with the same code.
    """
    for claim in claims(codec):
        batch = sealed(three(codec), **claim)
        theirs, _ = kafka.append(batch, base_offset=70, leader_epoch=5, timestamp_type=timestamp_type)
        assert answered(batch) is meant(theirs, batch), f"{claim}: Kafka answers {theirs.name}"
        assert opened(batch) or theirs is not ErrorCode.NONE, f"{claim}: Kafka takes what we cannot read"
