"""
Spark's side of writing, of a batch and of a stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kgateway.spark.writing import Writing


@dataclass
class Written(WriterCommitMessage):
    """
    What a task has done.
    """

    records: int


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

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return Written(self._writing.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        pass  # each task had its records acknowledged

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        pass  # what is in a topic stays there; the batch is tried again
