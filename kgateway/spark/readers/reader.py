"""
Batch and streaming queries.

The offsets of a batch query are fixed when it is planned. Those of a streaming query are in Spark's checkpoint, in the
form that Spark's own Kafka source has there:

    {"orders": {"0": 23, "1": 42}}

A batch that is tried again is planned from the same offsets, and so reads the same records.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kgateway.client.offsets import Extent
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.logs.interface import Logs
from kgateway.spark.logs.offset_range import OffsetRange, limited
from kgateway.spark.query import Query
from kgateway.spark.readers.offset_bounds import Bound, Offsets, of_json, to_json
from kgateway.spark.readers.range_reader import read_range
from kgateway.topic_partition import TopicPartition

Json = dict[str, dict[str, int]]


class Task(InputPartition):
    def __init__(self, of: OffsetRange) -> None:
        super().__init__(of)
        self.of = of


class BatchReader(DataSourceReader):
    def __init__(self, query: Query, starting: Bound, ending: Bound) -> None:
        self._query = query
        self._starting = starting
        self._ending = ending

    def partitions(self) -> Sequence[InputPartition]:
        with closing(self._query.location.open(planning=True)) as logs:
            extents = logs.extents(self._query.topics.partitions(logs))
            starts, ends = (bound.resolved(logs, extents) for bound in (self._starting, self._ending))
        for partition, end in ends.items():
            self._check(partition, starts[partition], end)
        return [Task(of) for of in self._query.ranges(starts, ends, extents)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(self._query, partition)

    def _check(self, partition: TopicPartition, start: int, end: int) -> None:
        if start > end and self._ending.everywhere is None:
            raise WrongOption(
                f"{self._starting.option} of {partition} is {start}, after {self._ending.option}, which is {end}"
            )


def rows_of(query: Query, task: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(task, Task):  # Spark makes an empty one where there are none
        return
    with closing(query.location.open(planning=False)) as logs:
        yield from read_range(logs.windows, task.of, query.wanted)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, query: Query, starting: Bound, most: int) -> None:
        self._query = query
        self._starting = starting
        self._most = most
        self._logs: Logs | None = None  # of the planner only; tasks open their own
        self._last: Offsets | None = None  # the end of a query with Trigger.AvailableNow
        self._seen: Offsets = {}  # the newest ends

    def initialOffset(self) -> Json:
        extents = self._extents()
        return to_json(self._starting.resolved(self._planning(), extents))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most) if self._most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = _ends(self._extents())

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        starts = self._of_checkpoint(start)
        extents = self._extents()
        self._seen = _ends(extents)
        ends = (
            self._seen if self._last is None else {one: self._last[one] for one in extents.keys() & self._last.keys()}
        )
        # A deleted partition keeps its offset until its loss has been reported; no offset moves backwards.
        begins = starts | {one: extents[one].start for one in ends.keys() - starts.keys()}
        ends = {one: max(ends.get(one, 0), at) for one, at in begins.items()}
        self._check_ends(begins, extents)
        return to_json(limited(begins, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends)

    def reportLatestOffset(self) -> Json | None:
        return to_json(self._seen) if self._seen else None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        starts, ends = self._of_checkpoint(start), self._of_checkpoint(end)
        if starts == ends:
            return []
        extents = self._extents()
        for one in ends.keys() - extents.keys():
            self._query.report_loss(f"{one} does not exist any more: it was deleted")
        ends = {one: ends[one] for one in ends.keys() & extents.keys()}
        starts = {one: starts.get(one, extents[one].start) for one in ends}
        return [Task(of) for of in self._query.ranges(starts, ends, extents)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(self._query, partition)

    def commit(self, end: Json) -> None:
        pass  # the checkpoint has it

    def stop(self) -> None:
        if self._logs:
            self._logs.close()
            self._logs = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_logs": None}

    def _planning(self) -> Logs:
        if self._logs is None:
            self._logs = self._query.location.open(planning=True)
        return self._logs

    def _extents(self) -> dict[TopicPartition, Extent]:
        logs = self._planning()
        all_there = self._query.wanted.fail_on_data_loss
        return logs.extents(self._query.topics.partitions(logs, all_there=all_there))

    def _of_checkpoint(self, offsets: Mapping[str, Mapping[str, Any]]) -> Offsets:
        alien = [topic for topic in offsets if not self._query.topics.has(topic)]
        if alien:
            raise WrongOption(
                f"the checkpoint belongs to a query that reads {', '.join(alien)}, but this one reads "
                f"{self._query.topics}: give this query its own checkpointLocation"
            )
        try:
            return of_json(offsets)
        except (ValueError, TypeError, AttributeError) as error:
            raise Unreadable(f"the offsets in the checkpoint are not those of this source: {offsets}") from error

    def _check_ends(self, starts: Offsets, extents: Mapping[TopicPartition, Extent]) -> None:
        for one, at in starts.items():
            if one not in extents:
                self._query.report_loss(f"{one} does not exist any more: it was deleted")
            elif at > extents[one].end:
                self._query.report_loss(
                    f"{one} ends at offset {extents[one].end}, but this query has read up to {at - 1}: the topic was "
                    "recreated, or its log has lost its end"
                )


def _ends(extents: Mapping[TopicPartition, Extent]) -> Offsets:
    return {one: extent.end for one, extent in extents.items()}
