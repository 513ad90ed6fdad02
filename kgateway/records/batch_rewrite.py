"""
A batch rewritten: with some of its records removed, as the same append of the same producer at the same offsets; with
its records compressed in another way; or with other records in their places.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

from kgateway.records.batch import (
    CODEC_BITS,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    NO_TIMESTAMP,
    Batch,
    BatchHeader,
    TimestampType,
    written,
)
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec, compress
from kgateway.records.record import Entry, Payload, Record, malformed, payload_of, records, timestamp_at
from kgateway.records.slices import RECORDS_A_STEP, Steps
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.varints import write_varint, write_varlong


def thinned(header: BatchHeader, data: bytes, kept: Sequence[Entry], horizon_ms: int | None = None) -> Batch:
    """
    The batch with only these of its records, and with the delete horizon, if it gets one now (KIP-534). Malformed if a
    timestamp cannot be: nobody has read it before.
    """
    base, max_timestamp = header.base_timestamp, header.max_timestamp
    try:
        parts = [_record(data, entry, base, horizon_ms) for entry in kept]
        if header.timestamp_type is TimestampType.CREATE_TIME:
            max_timestamp = max(base + timestamp_at(data, start)[0] for start, *_ in kept)
    except ValueError as wrong:
        raise _impossible_timestamp(wrong) from None
    return with_records(header, b"".join(parts), len(kept), max_timestamp, horizon_ms)


def with_records(
    header: BatchHeader, payload: bytes, count: int, max_timestamp: int, horizon_ms: int | None = None
) -> Batch:
    """
    The batch with other records, which are given uncompressed, and with the delete horizon, if it gets one now.
    Malformed if a timestamp cannot be.
    """
    left = copy(header)
    left.max_timestamp = max_timestamp
    if horizon_ms is not None:
        left.attributes |= DELETE_HORIZON_BIT
        left.base_timestamp = horizon_ms
    left.records_count = count
    try:
        return written(left, compress(header.codec, payload))
    except ValueError as wrong:
        raise _impossible_timestamp(wrong) from None


def _impossible_timestamp(wrong: ValueError) -> Malformed:
    return malformed("records", HEADER_SIZE, f"a timestamp is out of range: {wrong}")


def emptied(header: BatchHeader) -> Batch:
    """
    The batch without records. It still has its producer, offsets and sequence numbers.
    """
    left = copy(header)
    left.attributes &= ~(CODEC_BITS | DELETE_HORIZON_BIT)
    left.base_timestamp = header.max_timestamp
    left.records_count = 0
    return written(left, b"")


def hole(base_offset: int, last_offset: int, leader_epoch: int) -> Batch:
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        crc=0,
        attributes=0,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        records_count=0,
    )
    return written(header, b"")


def is_hole(header: BatchHeader) -> bool:
    return not header.records_count and header.producer_id < 0


def _record(data: bytes, entry: Entry, base_timestamp: int, horizon_ms: int | None) -> bytes:
    """
    The record as it is, or with its timestamp counted from the horizon.
    """
    start, end, *_ = entry
    if horizon_ms is None:
        return data[start:end]
    delta, time_start, time_end = timestamp_at(data, start)
    body = bytearray(data[time_start - 1 : time_start])  # the attributes
    write_varlong(body, base_timestamp + delta - horizon_ms)
    body += data[time_end:end]
    record = bytearray()
    write_varint(record, len(body))
    return bytes(record + body)


def recompressed(batch: Batch, codec: Codec, level: int | None = None) -> Steps[Batch]:
    """
    The batch in this codec. It has to be checked before, because it gets another CRC.
    """
    made: Batch = yield partial(_recompressed, batch, codec, level)
    return made


def _recompressed(batch: Batch, codec: Codec, level: int | None) -> Batch:
    try:
        data, start = payload_of(batch)
    except Malformed as malformed:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(malformed)) from None
    header = copy(batch.header)
    header.attributes = header.attributes & ~CODEC_BITS | codec
    return written(header, compress(codec, memoryview(data)[start:], level))


def changed(batch: Batch, change: Callable[[Record], Record]) -> Steps[Batch]:
    """
    A produced batch with the key, value and headers of each record as `change` returns them. It has to be checked
    before, because it gets another CRC.
    """
    header = batch.header
    builder = BatchBuilder(
        codec=header.codec,
        log_append_time_ms=header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    try:
        payload: Payload = yield partial(payload_of, batch)
        for record in records(batch, payload=payload):
            new = change(record)
            builder.append(new.key, new.value, timestamp=record.timestamp, headers=new.headers)
            if not builder.count % RECORDS_A_STEP:
                yield None
    except Malformed as malformed:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(malformed)) from None
    made: Batch = yield builder.batch
    return made
