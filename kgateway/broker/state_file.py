"""
The state of a coordinator as a file: record batches one behind the other, wherever the file is kept.
"""

from collections.abc import Iterator
from itertools import islice

from kgateway.broker.state_log import PIECE_RECORDS
from kgateway.interfaces import KeyValue
from kgateway.records.batch import batches, crc_holds
from kgateway.records.builder import BatchBuilder
from kgateway.records.record import records
from kgateway.wire.malformed import Malformed


def write_state(state: Iterator[KeyValue], written: list[bytes]) -> Iterator[None]:
    """
    Append the parts of the file to `written`, one at each step.
    """
    while piece := list(islice(state, PIECE_RECORDS)):
        builder = BatchBuilder()
        for key, value in piece:
            builder.append(key, value, timestamp=0)
        written.append(bytes(builder.build()))
        yield


def is_whole(data: bytes) -> bool:
    """
    Whether the file is as it was written.
    """
    try:
        return all(crc_holds(batch) for batch in batches(data))
    except Malformed:
        return False


def read_state(data: bytes) -> Iterator[KeyValue]:
    """
    The state in a file.
    """
    for batch in batches(data):
        yield from ((record.key, record.value) for record in records(batch) if record.key is not None)
