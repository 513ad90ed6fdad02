"""
A data source that reads nothing: it has one batch of rows, and gives it again and again. So it shows what Spark takes
of a source in Python that has no work at all, and none can be faster than that.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kgateway.spark.decoders.arrays import repeated
from kgateway.spark.decoders.columns import kafka_columns
from kgateway.spark.readers.range_reader import ReadSpec

_TASKS = 2
_BATCH_BYTES = 2 << 20  # as the real one


class Nothing(DataSource):
    """
    The options are `count` and `bytes`, of values.
    """

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(ReadSpec(tuple(kafka_columns(with_headers=False))).schema)

    def reader(self, schema: Any) -> "NothingReader":
        return NothingReader(int(self.options["count"]), int(self.options["bytes"]), tuple(schema.names))


class NothingReader(DataSourceReader):
    def __init__(self, count: int, value_bytes: int, names: tuple[str, ...]) -> None:
        self._count = count
        self._bytes = value_bytes
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch, left = self._batch(min(_BATCH_BYTES // self._bytes, self._count // _TASKS)), self._count // _TASKS
        while left:
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= min(left, batch.num_rows)

    def _batch(self, rows: int) -> pa.RecordBatch:
        schema, numbers = ReadSpec(self._names).schema, np.arange(rows)
        columns = {
            "key": pa.array([b"key-%08d" % number for number in range(rows)], pa.binary()),
            "value": pa.array([b"v" * self._bytes] * rows, pa.binary()),
            "topic": repeated(f"records-{self._bytes}", rows),
            "offset": pa.array(numbers),
            "timestamp": pa.array(numbers).cast(schema.field("timestamp").type) if "timestamp" in self._names else None,
        }
        zeros = pa.array(np.zeros(rows, np.int32))
        return pa.RecordBatch.from_arrays([columns.get(name, zeros) for name in self._names], schema=schema)
