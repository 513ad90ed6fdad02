"""
A batch query: offsets are settled when it is planned, and tasks read them.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kgateway.client.offsets import Partition
from kgateway.spark.bounds import Bound
from kgateway.spark.failures import WrongOption
from kgateway.spark.query import Query
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.reading import read


class Task(InputPartition):
    """
    What a task reads.
    """

    def __init__(self, of: OffsetRange) -> None:
        super().__init__(of)
        self.of = of


class BatchReader(DataSourceReader):
    """
    Plans and reads a batch query.
    """

    def __init__(self, query: Query, starting: Bound, ending: Bound) -> None:
        self._query = query
        self._starting = starting
        self._ending = ending

    def partitions(self) -> Sequence[InputPartition]:
        with closing(self._query.place.open(planning=True)) as logs:
            extents = logs.extents(self._query.topics.partitions(logs))
            starts, ends = (bound.resolved(logs, extents) for bound in (self._starting, self._ending))
        for partition, end in ends.items():
            self._check(partition, starts[partition], end)
        return [Task(of) for of in self._query.ranges(starts, ends, extents)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(self._query, partition)

    def _check(self, partition: Partition, start: int, end: int) -> None:
        if start > end and self._ending.everywhere is None:
            raise WrongOption(
                f"{self._starting.option} of {partition} is {start}, behind {self._ending.option}, which is {end}"
            )


def rows_of(query: Query, task: InputPartition) -> Iterator[pa.RecordBatch]:
    """
    What a task gives.
    """
    if not isinstance(task, Task):  # where there are none, Spark makes one of nothing
        return
    with closing(query.place.open(planning=False)) as logs:
        yield from read(logs, task.of, query.wanted)
