"""
A backfill from its beginning, or from where it was cut off, to the hand-over.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster, refuse
from kgateway.client.configs import Resource, described
from kgateway.client.offsets import Partition, commit, extents
from kgateway.client.topics import Topic
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.records.compression import Codec
from kgateway.spark.backfill.encoding import Columns, Numbering
from kgateway.spark.backfill.files import Source, in_words
from kgateway.spark.backfill.rows import Form
from kgateway.spark.backfill.sending import RESULT, Sending
from kgateway.spark.backfill.standing import Standing, standing
from kgateway.spark.backfill.state import State, load, save
from kgateway.spark.failures import Unreadable, Unwritten, WrongOption

MARKER_KEY = b"kgateway-backfill"
_DAY_MS = 86_400_000
_FOREVER = -1


@dataclass(frozen=True, slots=True)
class Ended:
    """
    Of a partition: how many rows are in its log, where they begin, where live records begin behind them, and how many
    records of others stand between.
    """

    index: int
    rows: int
    start: int
    end: int
    others: int


@dataclass(frozen=True, slots=True)
class Backfill:
    """
    What is wanted.
    """

    source: Source
    form: Form
    topic: Topic
    bootstrap: tuple[Address, ...]
    state: Path
    group: str
    marker: bool = False
    codec: Codec = Codec.NONE
    rate: float | None = None
    patience_s: float = 30.0
    tell: Callable[[str], None] = field(default=lambda words: None)

    def run(self, spark: SparkSession, cluster: Cluster) -> list[Ended]:
        """
        Do what is left to be done.
        """
        files = self.source.files(spark)
        frame = self.source.frame(spark, files)
        placed = self.form.placed(frame, len(self.topic.parts))
        before = load(self.state)
        if before:
            self._check(before, files)
        state = before or self._begun(cluster, placed, files)
        if state.handed_over is None:
            self._send(spark, state, placed)
            state = self._handed_over(cluster, state)
        return self._ends(state)

    def so_far(self, cluster: Cluster) -> tuple[int, int] | None:
        """
        How many records have come since the beginning, and how many are to come; those of others count with them.
        """
        state = load(self.state)
        if state is None:
            return None
        ends = extents(cluster, [part.partition for part in self.topic.parts])
        come = sum(extent.end - state.starts[one.index] for one, extent in ends.items())
        return come, sum(state.rows.values())

    def _said(self) -> dict[str, Any]:
        """
        What a second run has to say in the same way, by the names of the options.
        """
        form = self.form
        return {
            "format": self.source.format,
            "schema": self.source.schema,
            "key": form.key,
            "value": form.value,
            "timestamp": form.timestamp,
            "order-by": [*form.order],
            "marker": self.marker,
        }

    def _check(self, state: State, files: Sequence[Any]) -> None:
        try:
            state.check(self.topic.name, self.topic.id, len(self.topic.parts), files, self._said())
        except WrongOption as error:
            raise WrongOption(f"{self.state} cannot be gone on with: {error}. Another --state begins anew") from error

    def _begun(self, cluster: Cluster, placed: DataFrame, files: Sequence[Any]) -> State:
        self.tell(f"counting the rows of {len(files):,} file{'' if len(files) == 1 else 's'}")
        with in_words():
            counted = self.form.counted(placed, self.source.has_texts_only(files))
        if not counted.rows:
            raise Unreadable(f"there are no rows in {', '.join(self.source.paths)}")
        self._check_retention(cluster, counted.oldest_ms)
        ends = extents(cluster, [part.partition for part in self.topic.parts])
        numbering = cluster.settled(partial(_numbering, cluster))
        state = State(
            topic=self.topic.name,
            topic_id=self.topic.id,
            starts={one.index: extent.end for one, extent in ends.items()},
            rows={one.index: counted.rows.get(one.index, 0) for one in ends},
            producer_id=numbering.producer_id,
            epoch=numbering.epoch,
            files=files,
            said=self._said(),
        )
        save(self.state, state)
        return state

    def _check_retention(self, cluster: Cluster, oldest_ms: int | None) -> None:
        """
        Rows that are older than the topic keeps anything would go as soon as they came.
        """
        if oldest_ms is None:
            return
        names = ["retention.ms", "cleanup.policy"]
        [configs] = described(cluster, [Resource("topic", self.topic.name)], names).values()
        found = {config.name: config.value or "" for config in configs}
        kept_ms = int(found.get("retention.ms") or _FOREVER)
        age_ms = time.time_ns() // 1_000_000 - oldest_ms
        if kept_ms != _FOREVER and "delete" in found.get("cleanup.policy", "delete") and age_ms > kept_ms:
            raise WrongOption(
                f"the oldest row is {age_ms // _DAY_MS:,} days old, and {self.topic.name} keeps records for "
                f"{kept_ms / _DAY_MS:,.3g} days (retention.ms={kept_ms}): it would be deleted at once. Change that "
                f"(kgateway configs set topic {self.topic.name} retention.ms=-1), or leave out --timestamp"
            )

    def _send(self, spark: SparkSession, state: State, placed: DataFrame) -> None:
        count = len(self.topic.parts)
        at_once = max(min(count, spark.sparkContext.defaultParallelism), 1)
        sending = self._sending(state, None if self.rate is None else self.rate / at_once)

        # Without an annotation of its own Spark would take the class for another kind of function.
        def send(batches: Any) -> Any:
            return sending(batches)

        self.tell(f"{sum(state.rows.values()):,} rows for {self.topic.name}")
        with in_words():
            self.form.ordered(placed, count).mapInArrow(send, RESULT).collect()

    def _sending(self, state: State, rate: float | None = None) -> Sending:
        numbering = Numbering(state.producer_id, state.epoch)
        starts = dict(state.starts)
        return Sending(self.bootstrap, self.patience_s, self.topic.name, starts, numbering, self.codec, rate)

    def _handed_over(self, cluster: Cluster, state: State) -> State:
        """
        See that all rows are there, and mark where live records begin.
        """
        found = {index: self._standing(cluster, state, index) for index in state.starts}
        for index, rows in state.rows.items():
            if found[index].rows < rows:
                partition = Partition(self.topic.name, index)
                raise Unwritten(f"{partition} has {found[index].rows:,} rows of {rows:,}; run it again to go on")
        if self.marker:
            found = {index: self._marked(cluster, state, index) for index in state.starts}
        ends = {index: one.end for index, one in found.items()}
        commit(cluster, self.group, {Partition(self.topic.name, index): end for index, end in ends.items()})
        state = state.ended(ends)
        save(self.state, state)
        return state

    def _standing(self, cluster: Cluster, state: State, index: int) -> Standing:
        return standing(cluster, Partition(self.topic.name, index), state.starts[index], state.producer_id)

    def _marked(self, cluster: Cluster, state: State, index: int) -> Standing:
        """
        Append one more row, which is no row of the files.
        """
        appender = self._sending(state).appender(cluster, index)
        marker = Columns(
            pa.array([MARKER_KEY], pa.large_binary()),
            pa.array([None], pa.large_binary()),
            np.array([time.time_ns() // 1_000_000]),
        )
        appender.skip(state.rows[index])
        if not appender.has(marker):
            appender.append(marker, 1)
        return self._standing(cluster, state, index)

    def _ends(self, state: State) -> list[Ended]:
        ended = []
        for index, end in sorted((state.handed_over or {}).items()):
            start, rows = state.starts[index], state.rows[index]
            ended.append(Ended(index, rows, start, end, end - start - rows - int(self.marker)))
        return ended


def _numbering(cluster: Cluster) -> Numbering:
    """
    As whom the backfill sends for all its life.
    """
    connection = cluster.anyone()
    if not connection.serves(InitProducerIdRequest):
        raise WrongOption(f"{connection.address} knows no idempotent producers: rows could come twice")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    told = connection.ask(request, InitProducerIdResponse)
    refuse(told.error_code)
    return Numbering(told.producer_id, told.producer_epoch)
