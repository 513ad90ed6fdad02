"""
Says of each row to which partition it goes, before it is sent: in a transaction one task has all rows of a partition.

Spark may run one of these tasks again when some of those that write have theirs already, as where the machine is gone
that has what came of it. So a row goes to the same partition each time.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.cluster import Cluster
from kgateway.client.offsets import leaders_of
from kgateway.spark.backfill.hashing import partitions_of
from kgateway.spark.failures import Unwritten
from kgateway.spark.writing import Writing
from kgateway.wire.errors import ErrorCode, KafkaError

_BYTES = {"key", "value"}
_ORDER = ("key", "value", "headers", "partition", "topic")


def apart(frame: DataFrame, number: int, writing: Writing, tasks: int) -> DataFrame:
    """
    The rows of a batch with their partitions, all that go to the same in the same task.
    """
    placed = _plain(frame, writing.topic)
    place = Placing(number, writing)

    # Without an annotation of its own Spark would take the class for another kind of function.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return place(batches)

    owner = F.pmod(F.col("partition") + F.crc32(F.col("topic").cast("binary")), F.lit(tasks)).cast("int")
    return placed.mapInArrow(run, placed.schema).repartitionById(tasks, owner)


def _plain(frame: DataFrame, topic: str | None) -> DataFrame:
    """
    The columns that are written, each in one type.
    """
    columns = {name: F.col(name) for name in _ORDER if name in frame.columns}
    columns = {name: column.cast("binary") if name in _BYTES else column for name, column in columns.items()}
    columns.setdefault("key", F.lit(None).cast("binary"))
    columns.setdefault("partition", F.lit(None).cast("int"))
    if topic:
        columns["topic"] = F.lit(topic)
    return frame.select(*[column.alias(name) for name, column in columns.items()])


class Placing:
    """
    A task that knows how many partitions a topic has.
    """

    def __init__(self, number: int, writing: Writing) -> None:
        self._number = number
        self._writing = writing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """
        The same rows, with partitions.
        """
        context = TaskContext.get()
        assert context
        turn = self._number + context.partitionId()
        with self._writing.telling(), self._writing.reached() as cluster:
            counts: dict[str, int] = {}
            for batch in batches:
                yield self._placed(batch, turn, cluster, counts)

    def _placed(self, batch: pa.RecordBatch, turn: int, cluster: Cluster, counts: dict[str, int]) -> pa.RecordBatch:
        topics, place = batch.column("topic"), batch.schema.get_field_index("partition")
        found = batch.column(place)
        for topic in pc.unique(topics).to_pylist():
            if not topic:
                raise Unwritten("a row has no topic")
            if topic not in counts:
                counts[topic] = _partitions(cluster, topic)
            chosen = _chosen(batch.column("key"), turn, counts[topic])
            found = pc.if_else(pc.equal(topics, topic), pc.coalesce(found, chosen), found)
        return batch.set_column(place, batch.schema.field(place), found)


def _chosen(keys: pa.Array, turn: int, partitions: int) -> pa.Array:
    """
    Rows with a key go where they always do, those without all to one partition, which is another one for the next task,
    and in the next batch.
    """
    anywhere = pa.scalar(turn % partitions, pa.int32())
    placed = pa.array(partitions_of(keys, partitions).astype(np.int32))
    return pc.if_else(pc.is_null(keys), anywhere, placed)


def _partitions(cluster: Cluster, topic: str) -> int:
    found = cluster.kept_up(partial(leaders_of, cluster, [topic]))
    if not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
    return len(found)
