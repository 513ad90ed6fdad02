"""
A model of transactions in one partition: what was written, and what consumers of committed records get.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from kgateway.cluster.partition import Isolation, Origin
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, batches
from kgateway.records.control import Marker, marker_batch, read_marker
from kgateway.records.record import Record, records
from tests.broker.behaviour import START_MS, appended, fetched
from tests.records.values import batch_of

PRODUCERS = range(70, 74)
COORDINATOR_EPOCH = 3


def in_transaction(producer_id: int, *keys: bytes | None, sequence: int = 0, epoch: int = 0) -> Batch:
    rows = [Record(n, START_MS + n, key, b"%d of %d" % (sequence + n, producer_id)) for n, key in enumerate(keys)]
    options = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return batch_of(rows, is_transactional=True, **options)


def marked(producer_id: int, commits: bool, *, epoch: int = 0, coordinator_epoch: int = COORDINATOR_EPOCH) -> Batch:
    return marker_batch(producer_id, epoch, Marker(commits, coordinator_epoch), START_MS)


def transact(partition: IPartition, *sent: Batch) -> list[int]:
    return [appended(partition, one, Origin.COORDINATOR).base_offset for one in sent]


def committed(partition: IPartition, offset: int, max_bytes: int = 1 << 20) -> list[Record]:
    """
    The records that a consumer of committed records gets from this offset on.
    Like the clients, it skips a producer's records from the offset of an aborted transaction up to the marker.
    """
    found = list[Record]()
    while offset < partition.last_stable:
        read = fetched(partition, offset, max_bytes, Isolation.READ_COMMITTED, at_least_one=True)
        assert read.last_stable == partition.last_stable
        assert read.aborted is not None
        got = [batch for data in read.batches for batch in batches(data)]
        assert got, f"there is nothing to read from offset {offset} on"
        found += _left_in(got, [*read.aborted], offset)
        offset = got[-1].header.last_offset + 1
    assert fetched(partition, offset, isolation=Isolation.READ_COMMITTED, at_least_one=True).batches == []
    return found


def _left_in(got: Iterable[Batch], aborted: list[tuple[int, int]], offset: int) -> list[Record]:
    found, dropped = list[Record](), set[int]()
    for batch in got:
        header = batch.header
        for one in [one for one in aborted if one[1] <= header.last_offset]:
            aborted.remove(one)
            dropped.add(one[0])
        if header.is_control:
            marker = read_marker(batch)
            if marker and not marker.commits:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            found += [record for record in records(batch) if record.offset >= offset]
    return found


@dataclass(slots=True)
class Transaction:
    """
    A transaction, whose end is yet unknown.
    """

    first_offset: int
    commits: bool | None = None
    marker_offset: int | None = None


@dataclass
class Ledger:
    """
    Everything written to a partition.
    """

    chance: Random
    has_stray_markers: bool = True  # where nothing was open; of a producer that is forgotten they tell another epoch
    written: dict[int, tuple[Record, Transaction | None]] = field(default_factory=dict)
    open: dict[int, Transaction] = field(default_factory=dict)
    ended: list[tuple[int, Transaction]] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    def write(self, partition: IPartition) -> None:
        """
        Write a few records, in a transaction or outside; or a marker, with or without a transaction.
        """
        producer = self.chance.choice(PRODUCERS)
        turn = self.chance.random()
        if turn < 0.35 and (producer in self.open or (self.has_stray_markers and turn < 0.05)):
            self.end(partition, producer, commits=self.chance.random() < 0.5)
        else:
            self.put(partition, producer if turn < 0.85 else None)

    def put(self, partition: IPartition, producer: int | None) -> None:
        keys = [b"%d" % self.chance.randrange(8) for _ in range(self.chance.randint(1, 3))]
        if producer is None:
            rows = [Record(n, START_MS + n, key, b"%d" % next(self._numbers)) for n, key in enumerate(keys)]
            sent, transaction = batch_of(rows), None
        else:
            sequence = self.sequences.get(producer, 0)
            sent = in_transaction(producer, *keys, sequence=sequence)
            self.sequences[producer] = sequence + len(keys)
            transaction = self.open.setdefault(producer, Transaction(partition.log_end))
        (base,) = transact(partition, sent)
        for record in records(sent):
            self.written[base + record.offset] = record._replace(offset=base + record.offset), transaction

    def end(self, partition: IPartition, producer: int, *, commits: bool) -> None:
        (offset,) = transact(partition, marked(producer, commits))
        transaction = self.open.pop(producer, None)
        if transaction:
            transaction.commits, transaction.marker_offset = commits, offset
            self.ended.append((producer, transaction))

    @property
    def committed(self) -> list[Record]:
        """
        All committed records below the last stable offset.
        """
        end = min((one.first_offset for one in self.open.values()), default=1 << 62)
        return [
            record
            for offset, (record, transaction) in self.written.items()
            if offset < end and (transaction is None or transaction.commits)
        ]

    def check(self, partition: IPartition) -> None:
        """
        Check that a consumer of committed records gets them from every offset.
        """
        stable = min([partition.log_end, *(max(one.first_offset, partition.log_start) for one in self.open.values())])
        assert partition.last_stable == stable
        for _ in range(3):
            start = self.chance.randint(partition.log_start, stable)
            expected = [record for record in self.committed if record.offset >= start]
            assert committed(partition, start, self.chance.choice((1, 300, 1 << 20))) == expected
