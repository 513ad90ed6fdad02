"""
The records of a batch as bytes, uncompressed.
"""

from typing import NamedTuple

from kgateway.records.batch import HEADER_SIZE, MAGIC, Batch
from kgateway.records.compression import Codec, decompress
from kgateway.wire.malformed import Malformed, Place

RECORDS_BYTES_MAX = 128 << 20  # decompressed, unless the caller says otherwise


class Payload(NamedTuple):
    """
    Bytes that hold the records, and where the first begins.
    """

    data: bytes
    start: int


def payload_of(batch: Batch, limit: int = RECORDS_BYTES_MAX) -> Payload:
    """
    The records of a batch, if decompressing them gives no more than `limit` bytes.
    """
    compressed = batch.data[HEADER_SIZE:]
    try:
        codec = batch.header.codec
        if codec is Codec.NONE or not compressed:
            return Payload(bytes(batch.data), HEADER_SIZE)
        return Payload(decompress(codec, compressed, limit), 0)
    except ValueError as failure:
        raise malformed("records", HEADER_SIZE, str(failure)) from None


def malformed(field: str, position: int, reason: str) -> Malformed:
    """
    What is wrong with a batch. Positions count from its start, or from that of the decompressed records.
    """
    return Malformed(Place("RecordBatch", MAGIC, field), position, reason)
