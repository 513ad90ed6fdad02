"""
A batch with its records compressed in another way, which leaves them and all that the header says of them as they are.
"""

from copy import copy
from functools import partial

from kgateway.records.batch import CODEC_BITS, Batch, written
from kgateway.records.compression import Codec, compress
from kgateway.records.payload import payload_of
from kgateway.records.steps import Steps
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed


def recompressed(batch: Batch, codec: Codec, level: int | None = None) -> Steps[Batch]:
    """
    The batch in this codec; it has to be checked before, for it gets another CRC.
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
