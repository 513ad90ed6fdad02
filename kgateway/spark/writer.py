"""
Spark's side of writing, of a batch and of a stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kgateway.spark.guard import AtLeastOnce, BatchGuard, BatchId
from kgateway.spark.writing import Writing

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  # what Spark tells the tasks of a stream


@dataclass
class Written(WriterCommitMessage):
    """
    What a task has done.
    """

    records: int
    batch: BatchId | None = None


class BatchWriter(DataSourceArrowWriter):
    """
    Writes a DataFrame.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return Written(self._writing.write(iterator))


class StreamWriter(DataSourceStreamArrowWriter):
    """
    Writes the batches of a stream. Spark makes one anew for each, and for its end.
    """

    def __init__(self, writing: Writing, guard: BatchGuard | None = None) -> None:
        self._writing = writing
        self._guard = guard or AtLeastOnce()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        batch = _this_batch()
        if self._guard.is_written(batch):
            return Written(0, batch)
        return Written(self._writing.write(iterator), batch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        batches = {message.batch for message in messages if isinstance(message, Written) and message.batch}
        for batch in batches:
            self._guard.written(batch)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        pass  # what is in a topic stays there; the batch is tried again


def _this_batch() -> BatchId:
    context = TaskContext.get()
    query, number = (context.getLocalProperty(name) if context else None for name in (_QUERY, _BATCH))
    return BatchId(query or "", int(number or 0))
