"""
Ledgers as earlier versions have stored them: as messages of a topic.
"""

from collections.abc import Sequence
from struct import pack

from crc32c import crc32c

from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Row
from kgateway.topic_partition import PartitionId

WHOLE = RingRange(0, 2520)


def key(owner: PartitionId) -> bytes:
    return pack(">16sii", owner.topic_id, 32 * owner.index, 32 * owner.index + 31)


def value(
    rows: Sequence[Row],
    first_row: int = 0,
    *,
    batched: bool = True,
    epoch: int = 1,
    start: int = 0,
    unix_time_ns: int = 0,
    part: RingRange = WHOLE,
    version: int = 1,
) -> bytes:
    """
    A part of a ledger.
    """
    head = pack(">BBiqqiiqi", version, batched, epoch, start, unix_time_ns, *part, first_row, len(rows))
    kafka, messages, times, maxima, spans = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    count = len(rows)
    data = head + pack(f">{4 * count}q{count}i", *kafka, *messages, *times, *maxima, *spans)
    return data + pack(">I", crc32c(data))
