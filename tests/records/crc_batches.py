"""
A small batch, and headers with any claims under a valid CRC.
"""

from typing import Any

from crc32c import crc32c

from kgateway.records.batch import CRC_START, HEADER_SIZE, MAGIC, Batch, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.wire.codec import encode
from tests.records.values import batch_of, with_header


def three(codec: Codec = Codec.NONE) -> Batch:
    return batch_of([Record(n, 1_000 + n, b"key", b"value", (Header("h", b"x"),)) for n in range(3)], codec=codec)


def sealed(batch: Batch, **changes: Any) -> Batch:
    """
    The batch with another header and a valid CRC.
    """
    header, payload = with_header(batch, **changes).header, batch.data[HEADER_SIZE:]
    header.crc = crc32c(payload, crc32c(encode(header, MAGIC)[CRC_START:]))
    return read_batch(encode(header, MAGIC) + payload)
