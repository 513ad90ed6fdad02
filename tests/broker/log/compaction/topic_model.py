"""
A model of a compacted topic: what was written, and what may and must be left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.batch_scan import scan
from kgateway.cluster.partition import Isolation
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from tests.broker.behaviour import result

CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "600",
    "index.interval.bytes": "100",
    "min.cleanable.dirty.ratio": "0",
    "kgateway.acks.fsync": "true",
}


def read_all(partition: IPartition) -> list[Record]:
    """
    All records as a consumer gets them; no response may consist of batches without records.
    """
    found = list[Record]()
    offset = partition.log_start
    while offset < partition.high_watermark:
        read = result(partition.read(offset, 700, Isolation.READ_UNCOMMITTED, True))
        here = [record for data in read.batches for batch in batches(data) for record in records(batch)]
        assert here, f"there is nothing to read from offset {offset} on"
        found += [record for record in here if record.offset >= offset]
        offset = max(batch.header.last_offset for data in read.batches for batch in batches(data)) + 1
    return found


def check_whole(partition: LogPartition) -> None:
    """
    Check that every offset belongs to a batch.
    """
    log, expected = partition.segment_list, partition.segment_list.start_offset
    for segment in log.segments:
        for found in scan(log.files.get(segment.path).read, 0, segment.size, segment.base_offset):
            assert isinstance(found, Batch)
            assert found.header.base_offset == expected
            expected = found.header.last_offset + 1
    assert expected == partition.log_end


@dataclass
class Expected:
    """
    The expected records as a dictionary, and their history.
    """

    written: dict[int, Record] = field(default_factory=dict)  # by offset
    unsure: set[int] = field(default_factory=set)  # offsets that were never acknowledged

    @property
    def latest(self) -> Mapping[bytes | None, Record]:
        """
        The last acknowledged record of each key.
        """
        return {record.key: record for offset, record in sorted(self.written.items()) if offset not in self.unsure}

    def check(self, read: list[Record], *, tombstones_may_go: bool = False) -> None:
        """
        Check that each record was written, in order, and that the last one of each key is there.
        """
        offsets = [record.offset for record in read]
        assert offsets == sorted(set(offsets))
        for record in read:
            assert record == self.written[record.offset]
        found = {record.key: record for record in read}
        for key, record in self.latest.items():
            if record.value is None and tombstones_may_go:
                continue
            later = found.get(key)
            assert later, f"the last record of {key!r} is gone: {record}"
            assert later.offset >= record.offset, f"of {key!r} an old record is the last one: {later}, not {record}"
