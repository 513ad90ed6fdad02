"""
The offsets of records that go from an archive: found by Spark, kept beside the archive in files, and read by the tasks
that write its files anew.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from kgateway.spark.archive.parquet import Sink
from kgateway.spark.archive.store import Store
from kgateway.spark.archive.tiles import SUFFIX, File

_SCHEMA = pa.schema([pa.field("partition", pa.int32()), pa.field("offset", pa.int64())])


def noted(records: DataFrame, store: Store, folder: PurePath) -> tuple[PurePath, ...]:
    """
    The files in which it stands which of these records there are.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name in _written(batches, store, folder):
            yield pa.RecordBatch.from_pydict({"name": [name]})

    ordered = records.select(*_SCHEMA.names).orderBy(*_SCHEMA.names)
    return tuple(folder / row["name"] for row in ordered.mapInArrow(write, "name string").collect())


def offsets_of(file: File, store: Store, going: Sequence[PurePath]) -> np.ndarray:
    """
    Those of a file of the archive.
    """
    partition, offset = ds.field("partition"), ds.field("offset")
    mine = (partition == file.partition) & (offset >= file.first) & (offset <= file.last)
    found = [np.empty(0, np.int64)]
    for path in going:
        with store.open(path) as listed:
            found.append(pq.read_table(listed, columns=["offset"], filters=mine)["offset"].to_numpy())
    return np.concatenate(found)


def _written(batches: Iterable[pa.RecordBatch], store: Store, folder: PurePath) -> Iterator[str]:
    """
    The name of the file, unless there is nothing for it.
    """
    writer, making, name = None, store.make(folder), f"{uuid.uuid4().hex}{SUFFIX}"
    try:
        for batch in batches:
            writer = writer or pq.ParquetWriter(pa.PythonFile(Sink(making), "w"), _SCHEMA)
            writer.write_batch(batch.cast(_SCHEMA))
        if writer:
            writer.close()
            making.name(name)
            yield name
    finally:
        making.give_up()
