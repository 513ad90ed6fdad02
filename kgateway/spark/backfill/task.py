"""
A Spark task of a backfill: the rows of a partition arrive in order, and are appended to its log.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address, Unanswered
from kgateway.records.compression import Codec
from kgateway.spark.backfill.appender import Appender
from kgateway.spark.backfill.batch_encoder import Columns, ProducerEpoch
from kgateway.spark.errors import Unwritten
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

RESULT = "partition int, appended long"
_TICKS = 10  # a second: at least so many batches, where the rate is limited


class Pace:
    """
    Limits the number of rows per second.
    """

    def __init__(
        self,
        rate: float | None,
        seconds: Callable[[], float] = time.monotonic,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._seconds = seconds
        self._rest = rest
        self._began = seconds()
        self._count = 0

    @property
    def most(self) -> int:
        """
        How many rows may be sent at once.
        """
        return max(int(self._rate / _TICKS), 1) if self._rate else 1 << 31

    def count(self, rows: int) -> None:
        """
        Count rows that were sent, and wait until the next may be.
        """
        if self._rate:
            self._count += rows
            self._rest(max(self._began + self._count / self._rate - self._seconds(), 0))


@dataclass(frozen=True, slots=True)
class BackfillTask:
    """
    Where rows are sent, and by which producer; `rate` is that of one task.
    """

    bootstrap: tuple[Address, ...]
    patience_s: float
    topic: str
    starts: Mapping[int, int]
    numbering: ProducerEpoch
    codec: Codec
    rate: float | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """
        Append what the log does not have yet; yields how much that was.
        """
        try:
            with Cluster(self.bootstrap, self.patience_s) as cluster:
                appended = self._append(cluster, batches)
        except (KafkaError, Unanswered) as error:
            raise Unwritten(f"rows could not be written to {self.topic}: {error}; run it again to continue") from error
        numbers = pa.array([*appended], pa.int32()), pa.array([*appended.values()], pa.int64())
        yield pa.RecordBatch.from_arrays([*numbers], ["partition", "appended"])

    def _append(self, cluster: Cluster, batches: Iterable[pa.RecordBatch]) -> Mapping[int, int]:
        appenders: dict[int, Appender] = {}
        appended: dict[int, int] = defaultdict(int)
        pace = Pace(self.rate)
        for index, rows in _by_partition(batches):
            appender = appenders.get(index) or self.appender(cluster, index)
            appenders = {index: appender}  # rows arrive partition after partition
            while not appender.has(rows):
                before = appender.appended
                appender.append(rows, pace.most)
                appended[index] += appender.appended - before
                pace.count(appender.appended - before)
            appender.skip(len(rows))
        return appended

    def appender(self, cluster: Cluster, index: int) -> Appender:
        return Appender(cluster, TopicPartition(self.topic, index), self.starts[index], self.numbering, self.codec)


def _by_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Columns]]:
    for batch in batches:
        indexes = batch.column("partition").to_numpy(zero_copy_only=False)
        edges = [0, *(np.flatnonzero(np.diff(indexes)) + 1).tolist(), len(indexes)]
        rows = Columns.of(batch)
        for start, end in pairwise(edges):
            if end > start:
                yield int(indexes[start]), rows.cut(start, end)
