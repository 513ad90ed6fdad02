"""
The records of a batch, for the forms that write each of them as a message of its own.
"""

from kgateway.records.batch import Batch
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed

_LONG = range(-(1 << 63), 1 << 63)


def opened(batch: Batch) -> list[Record]:
    """
    The records, if there is a place for them and each stands where it must.
    """
    header = batch.header
    if header.is_control or header.is_transactional:
        raise refused("batches of transactions have no place in this topic, whose messages are single records")
    try:
        found = list(records(batch))
    except Malformed as failure:
        raise refused(f"the records cannot be read: {failure}") from None
    for number, record in enumerate(found):
        if record.offset != header.base_offset + number:
            raise refused(f"record {number} is numbered {record.offset - header.base_offset}")
        if record.timestamp not in _LONG:
            raise refused(f"record {number} has the timestamp {record.timestamp}, which takes more than 64 bits")
    return found


def refused(reason: str) -> KafkaError:
    """
    What the producer is told.
    """
    return KafkaError(ErrorCode.INVALID_RECORD, reason)
