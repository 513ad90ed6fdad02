"""
Reads partitions from where they are to be read to where that ends.
"""

from argparse import Namespace
from collections.abc import Mapping
from functools import partial

from kgateway.cli.consume_ends import Ends, ends
from kgateway.cli.consume_output import Output
from kgateway.cli.interrupts import Interrupts
from kgateway.cli.places import resolved
from kgateway.client.cluster import Cluster
from kgateway.client.fetching import Fetched, Fetching
from kgateway.client.offsets import Extent, Partition, extents

_WAIT_MS = 500


class Reading:
    """
    Some partitions that are read. `reached` says how far they have been written out; `notes` what was not as asked.
    """

    def __init__(
        self,
        options: Namespace,
        cluster: Cluster,
        partitions: list[Partition],
        output: Output,
        interrupts: Interrupts,
        begun: Mapping[Partition, int] | None = None,
    ) -> None:
        self.notes: list[str] = []
        self.reached: dict[Partition, int] = {}
        self._output = output
        self._interrupts = interrupts
        logs = cluster.settled(partial(extents, cluster, partitions))
        starts = resolved(cluster, options.start, logs) | {one: at for one, at in (begun or {}).items() if one in logs}
        positions = {one: self._inside(one, starts[one], log) for one, log in sorted(logs.items())}
        self._fetching = Fetching(cluster, positions)
        self._ends = _ends(options, cluster, logs, output)
        for one in logs:
            self._look(one)

    @property
    def is_over(self) -> bool:
        """
        Whether there is nothing left to read.
        """
        return self._ends.has_enough or not self._fetching.positions

    def step(self) -> None:
        """
        Write out what there is; where there is nothing, wait a little.
        """
        for fetched in self._fetching.poll(_WAIT_MS):
            self._write(fetched)
            if self._ends.has_enough or self._interrupts.came:
                break
        self._output.flush()

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
            if fetched.batches:  # behind the last record may stand what is none, such as the end of a transaction
                self.reached[one] = self._fetching.positions[one]
        self._look(one)

    def _look(self, one: Partition) -> None:
        if one in self._fetching.positions:
            self._ends.look(one, self._fetching.positions[one])
        if one in self._ends.done:
            self._fetching.positions.pop(one, None)

    def _inside(self, one: Partition, wanted: int | None, log: Extent) -> int:
        if wanted is None:
            return log.end  # no record is so late
        if wanted < log.start:
            self.notes.append(f"{one}: {wanted} was asked for, and the log begins at {log.start}")
        elif wanted > log.end:
            self.notes.append(f"{one}: {wanted} was asked for, and the log ends at {log.end}")
        return min(max(wanted, log.start), log.end)


def _ends(options: Namespace, cluster: Cluster, logs: Mapping[Partition, Extent], output: Output) -> Ends:
    found = resolved(cluster, options.until, logs) if options.until else {}
    made = ends(options.until, found, logs, options.follow)
    made.left = None if options.count is None else options.count - output.records
    return made
