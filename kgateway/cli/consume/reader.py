"""
Reads partitions between two offsets, and writes their records out.
"""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.offset_spec import Kind, OffsetSpec, resolve
from kgateway.cli.common.times import iso
from kgateway.cli.consume.output import Output
from kgateway.client.cluster import Cluster
from kgateway.client.fetcher import Fetched, Fetcher
from kgateway.client.offsets import Extent, extents
from kgateway.records.record import Record
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

_WAIT_MS = 500


@dataclass(slots=True)
class Ends:
    """
    Where each log ends for the reader; None where it is followed for ever. A time that no record has yet is looked for
    in those that arrive.
    """

    offsets: dict[TopicPartition, int | None]
    until_ms: int | None = None
    left: int | None = None  # how many records are wanted yet
    done: set[TopicPartition] = field(default_factory=set)

    def take(self, partition: TopicPartition, records: list[Record]) -> list[Record]:
        end = self.offsets.get(partition)
        if end is not None and records and records[-1].offset >= end:
            records = [record for record in records if record.offset < end]
            self.done.add(partition)
        elif self.until_ms is not None and end is None:
            records = self._before(partition, records, self.until_ms)
        if self.left is not None:
            records = records[: self.left]
            self.left -= len(records)
        return records

    def reach(self, partition: TopicPartition, position: int) -> None:
        """
        Note that the reader is at this offset, which may be the end.
        """
        end = self.offsets.get(partition)
        if end is not None and position >= end:
            self.done.add(partition)

    @property
    def has_enough(self) -> bool:
        """
        Whether the maximum number of records has been taken.
        """
        return self.left == 0

    def _before(self, partition: TopicPartition, records: list[Record], until_ms: int) -> list[Record]:
        for number, record in enumerate(records):
            if record.timestamp >= until_ms:
                self.done.add(partition)
                return records[:number]
        return records


def ends(
    until: OffsetSpec | None,
    found: Mapping[TopicPartition, int | None],
    extents: Mapping[TopicPartition, Extent],
    follow: bool,
) -> Ends:
    """
    The ends; without --follow they are at most where the logs end now.
    """
    until_ms = until.number if until is not None and until.kind is Kind.TIME else None
    offsets: dict[TopicPartition, int | None] = {}
    for partition, extent in extents.items():
        wanted = found.get(partition) if until is not None else None
        if follow:
            offsets[partition] = wanted
        else:
            offsets[partition] = extent.end if wanted is None else min(wanted, extent.end)
    return Ends(offsets, until_ms)


class Reader:
    """
    Reads partitions and writes their records out. `reached` has the offset up to which each was written; `notes`
    explain starts that had to be moved into the log.
    """

    def __init__(
        self,
        options: Namespace,
        cluster: Cluster,
        partitions: list[TopicPartition],
        output: Output,
        interrupts: Interrupts,
        begun: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self.notes: list[str] = []
        self.reached: dict[TopicPartition, int] = {}
        self._output = output
        self._interrupts = interrupts
        logs = cluster.retry(partial(extents, cluster, partitions))
        starts = resolve(cluster, options.start, logs) | {one: at for one, at in (begun or {}).items() if one in logs}
        positions = {one: self._inside(one, starts[one], log) for one, log in sorted(logs.items())}
        if options.start.kind is Kind.TIME and starts and set(starts.values()) == {None}:
            self.notes.append(f"no record has the time {iso(options.start.number)} or a later one")
        self._fetching = Fetcher(cluster, positions)
        self._follows = options.follow
        self._damage: KafkaError | None = None  # of a partition that is not read any more
        self._ends = _ends_of(options, cluster, logs, output)
        for one in logs:
            self._look(one)

    @property
    def is_over(self) -> bool:
        return self._ends.has_enough or not self._fetching.positions

    def step(self) -> None:
        """
        Write out the records that have arrived, or wait a little. If a partition has damaged records, the others are
        read to their ends before that is raised; if they are followed, it is raised at once.
        """
        for fetched in self._interrupts.unless_interrupted(partial(self._fetching.poll, _WAIT_MS)) or ():
            if fetched.damage:
                self._damage = self._damage or fetched.damage
                del self._fetching.positions[fetched.partition]
                continue
            self._write(fetched)
            if self._ends.has_enough or self._interrupts.came:
                break
        self._output.flush()
        self.reached |= self._output.lost
        if self._damage and not self._ends.has_enough and (self._follows or self.is_over):
            raise self._damage

    def _write(self, fetched: Fetched) -> None:
        one = fetched.partition
        for records in self._fetching.records_of(fetched):
            wanted = self._ends.take(one, records)
            self._output.write(one, wanted)
            if wanted:
                self.reached[one] = wanted[-1].offset + 1
            if one in self._ends.done or self._ends.has_enough or self._interrupts.came:
                break
        else:
            if fetched.batches:  # the log may go on with what is no record, such as the end of a transaction
                self.reached[one] = self._fetching.positions[one]
        self._look(one)

    def _look(self, one: TopicPartition) -> None:
        if one in self._fetching.positions:
            self._ends.reach(one, self._fetching.positions[one])
        if one in self._ends.done:
            self._fetching.positions.pop(one, None)

    def _inside(self, one: TopicPartition, wanted: int | None, log: Extent) -> int:
        if wanted is None:
            return log.end  # no record is so late
        if wanted < log.start:
            self.notes.append(f"{one}: {wanted} requested, but the log begins at {log.start}")
        elif wanted > log.end:
            self.notes.append(f"{one}: {wanted} requested, but the log ends at {log.end}")
        return min(max(wanted, log.start), log.end)


def _ends_of(options: Namespace, cluster: Cluster, logs: Mapping[TopicPartition, Extent], output: Output) -> Ends:
    found = resolve(cluster, options.until, logs) if options.until else {}
    made = ends(options.until, found, logs, options.follow)
    made.left = None if options.count is None else options.count - output.records
    return made
