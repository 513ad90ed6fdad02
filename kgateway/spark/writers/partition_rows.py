"""
Assigns rows to partitions before they are sent: in a transaction one task has all rows of a partition.

Spark may run one of these tasks again when some of the writing tasks have their rows already, as after the loss of a
machine. So a row must get the same partition each time.

Keys are hashed as `kgateway.client.producer` does, a whole column at a time. The hash takes a key word by word, and a
step here is one word of all keys that have it, so long keys cost little more than short ones.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.cluster import Cluster, leaders_of
from kgateway.spark.errors import Unwritten
from kgateway.spark.writers.writer import TopicWriter
from kgateway.wire.errors import ErrorCode, KafkaError

_SEED, _FACTOR, _SHIFT = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
_POSITIVE = np.uint32(0x7FFFFFFF)
_WORD = 4
_BYTES = {"key", "value"}
_ORDER = ("key", "value", "headers", "partition", "topic")


def partitions_of(keys: pa.Array, partitions: int) -> np.ndarray:
    """
    The partition of each key. Null has the partition of an empty key.
    """
    keys = keys.cast(pa.large_binary()).fill_null(b"")
    return ((_hashes(keys) & _POSITIVE) % np.uint32(partitions)).astype(np.int32)


def _hashes(keys: pa.Array) -> np.ndarray:
    starts, lengths, data = _spans(keys)
    hashed = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    whole = lengths // _WORD
    for word in range(int(whole.max(initial=0))):
        longer = np.flatnonzero(whole > word)
        mixed = _words(data, starts[longer] + _WORD * word) * _FACTOR
        mixed = (mixed ^ (mixed >> _SHIFT)) * _FACTOR
        hashed[longer] = (hashed[longer] * _FACTOR) ^ mixed
    rest = np.flatnonzero(lengths % _WORD)
    kept = np.uint32(8) * (lengths[rest] % _WORD).astype(np.uint32)
    last = _words(data, starts[rest] + _WORD * whole[rest]) & ((np.uint32(1) << kept) - np.uint32(1))
    hashed[rest] = (hashed[rest] ^ last) * _FACTOR
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _FACTOR
    return hashed ^ (hashed >> np.uint32(15))


def _spans(keys: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    The start and the length of each key, and the bytes of all, padded so that a word can be read anywhere.
    """
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    first, last = (int(bounds[0]), int(bounds[-1])) if len(keys) else (0, 0)
    held = np.frombuffer(data, np.uint8)[first:last] if data is not None and last > first else np.empty(0, np.uint8)
    starts = bounds[:-1] - first
    return starts, np.diff(bounds), np.concatenate([held, np.zeros(_WORD, np.uint8)])


def _words(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    words = np.zeros(len(places), np.uint32)
    for byte in range(_WORD):
        words |= data[places + byte].astype(np.uint32) << np.uint32(8 * byte)
    return words


def partitioned(frame: DataFrame, number: int, writing: TopicWriter, tasks: int) -> DataFrame:
    """
    The rows of a batch with their partitions; all rows of a partition are in the same task.
    """
    placed = _plain(frame, writing.topic)
    place = PartitionAssigner(number, writing)

    # A plain function: Spark would take the annotated __call__ for another kind of UDF.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return place(batches)

    owner = F.pmod(F.col("partition") + F.crc32(F.col("topic").cast("binary")), F.lit(tasks)).cast("int")
    return placed.mapInArrow(run, placed.schema).repartitionById(tasks, owner)


def _plain(frame: DataFrame, topic: str | None) -> DataFrame:
    """
    The written columns, each cast to one type.
    """
    columns = {name: F.col(name) for name in _ORDER if name in frame.columns}
    columns = {name: column.cast("binary") if name in _BYTES else column for name, column in columns.items()}
    columns.setdefault("key", F.lit(None).cast("binary"))
    columns.setdefault("partition", F.lit(None).cast("int"))
    if topic:
        columns["topic"] = F.lit(topic)
    return frame.select(*[column.alias(name) for name, column in columns.items()])


class PartitionAssigner:
    def __init__(self, number: int, writing: TopicWriter) -> None:
        self._number = number
        self._writing = writing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context
        turn = self._number + context.partitionId()
        with self._writing.raising_unwritten(), self._writing.cluster() as cluster:
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
    Rows with a key get their key's partition. The others share one partition, which changes with each task and batch.
    """
    anywhere = pa.scalar(turn % partitions, pa.int32())
    placed = pa.array(partitions_of(keys, partitions).astype(np.int32))
    return pc.if_else(pc.is_null(keys), anywhere, placed)


def _partitions(cluster: Cluster, topic: str) -> int:
    found = cluster.retry(partial(leaders_of, cluster, [topic], may_create=True), reconnect=True)
    if not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
    return len(found)
