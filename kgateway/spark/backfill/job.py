"""
A backfill, from its start, or from where it was interrupted, to the hand-over.

A small file has what it was started with. How far it has come is in the topic.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kgateway.client.cluster import Cluster, refuse
from kgateway.client.configs import ConfigResource, describe_configs
from kgateway.client.connection import Address
from kgateway.client.group_offsets import commit_offsets
from kgateway.client.offsets import extents
from kgateway.client.topics import TopicDescription
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.records.compression import Codec
from kgateway.spark.backfill.appender import Progress, progress_of
from kgateway.spark.backfill.batch_encoder import Columns, ProducerEpoch
from kgateway.spark.backfill.files import File, Source, java_errors
from kgateway.spark.backfill.rows import RowMapping
from kgateway.spark.backfill.task import RESULT, BackfillTask
from kgateway.spark.errors import Unreadable, Unwritten, WrongOption
from kgateway.topic_partition import TopicPartition

_VERSION = 1
MARKER_KEY = b"kgateway-backfill"
_DAY_MS = 86_400_000
_FOREVER = -1


@dataclass(frozen=True, slots=True)
class State:
    """
    What a backfill was started with: the topic, the start offset and the number of rows of each partition, the
    producer, the files and the options; when it is over, also where the live records begin.
    """

    topic: str
    topic_id: str
    starts: Mapping[int, int]
    rows: Mapping[int, int]
    producer_id: int
    epoch: int
    files: Sequence[File]
    said: Mapping[str, Any]
    handed_over: Mapping[int, int] | None = None

    def check(self, topic: str, topic_id: str, partitions: int, files: Sequence[File], said: Mapping[str, Any]) -> None:
        """
        Refuse to continue with anything but what the backfill was started with.
        """
        if topic != self.topic:
            raise WrongOption(f"it belongs to a backfill of {self.topic}, not of {topic}")
        if topic_id != self.topic_id:
            raise WrongOption(f"the topic {topic} was recreated since")
        if partitions != len(self.starts):
            raise WrongOption(f"{topic} had {len(self.starts)} partitions, but has {partitions} now: keys have moved")
        for name in sorted(said.keys() | self.said.keys()):
            if said.get(name) != self.said.get(name):
                raise WrongOption(f"--{name} was {_shown(self.said.get(name))}, but is {_shown(said.get(name))} now")
        before = {file.path: file for file in self.files}
        now = {file.path: file for file in files}
        for path in sorted(before.keys() | now.keys()):
            if before.get(path) != now.get(path):
                how = "is new" if path not in before else "is missing" if path not in now else "has changed since"
                raise WrongOption(f"the file {path} {how}")


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    return ",".join(value) if isinstance(value, list) else str(value)


def load_state(path: Path) -> State | None:
    """
    The state in a file; None where there is no file.
    """
    try:
        document = json.loads(path.read_text())
        if document.pop("version") != _VERSION:
            raise ValueError
        numbers = {name: _numbered(document.pop(name)) for name in ("starts", "rows", "handed_over")}
        files = [File(*one) for one in document.pop("files")]
        return State(**document, **numbers, files=files)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path} is not the state of a backfill: name another file with --state") from error


def _numbered(numbers: Mapping[str, int] | None) -> Any:
    return None if numbers is None else {int(index): number for index, number in numbers.items()}


def save_state(path: Path, state: State) -> None:
    """
    Write it completely or not at all.
    """
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        json.dump({"version": _VERSION, **asdict(state)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def so_far(cluster: Cluster, path: Path) -> tuple[int, int] | None:
    """
    How many records have been appended since the start, and how many rows there are; None if nothing was started.
    Records of others count, too.
    """
    state = load_state(path)
    if state is None:
        return None
    ends = extents(cluster, [TopicPartition(state.topic, index) for index in state.starts])
    come = sum(extent.end - state.starts[partition.index] for partition, extent in ends.items())
    return come, sum(state.rows.values())


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """
    Of one partition: the rows in its log, where they begin, where live records begin behind them, and how many records
    of others are among them.
    """

    index: int
    rows: int
    start: int
    end: int
    others: int


@dataclass(frozen=True, slots=True)
class Backfill:
    source: Source
    form: RowMapping
    topic: TopicDescription
    bootstrap: tuple[Address, ...]
    state: Path
    group: str
    marker: bool = False
    codec: Codec = Codec.NONE
    rate: float | None = None
    patience_s: float = 30.0
    report: Callable[[str], None] = field(default=lambda words: None)

    def run(self, spark: SparkSession, cluster: Cluster) -> list[PartitionResult]:
        files = self.source.files(spark)
        frame = self.source.frame(spark, files)
        placed = self.form.placed(frame, len(self.topic.parts))
        before = load_state(self.state)
        if before:
            self._check(before, files)
        state = before or self._begun(cluster, placed, files)
        if state.handed_over is None:
            self._send(spark, state, placed)
            state = self._handed_over(cluster, state)
        return self._ends(state)

    def _repeated_options(self) -> dict[str, Any]:
        """
        What a second run has to repeat, by the names of options.
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
            state.check(self.topic.name, self.topic.id, len(self.topic.parts), files, self._repeated_options())
        except WrongOption as error:
            raise WrongOption(
                f"cannot continue from {self.state}: {error}. Use another --state to start again"
            ) from error

    def _begun(self, cluster: Cluster, placed: DataFrame, files: Sequence[Any]) -> State:
        self.report(f"counting the rows of {len(files):,} file{'' if len(files) == 1 else 's'}")
        with java_errors():
            counted = self.form.counted(placed, self.source.has_texts_only(files))
        if not counted.rows:
            raise Unreadable(f"there are no rows in {', '.join(self.source.paths)}")
        self._check_retention(cluster, counted.oldest_ms)
        ends = extents(cluster, [part.partition for part in self.topic.parts])
        numbering = cluster.retry(partial(_numbering, cluster))
        state = State(
            topic=self.topic.name,
            topic_id=self.topic.id,
            starts={one.index: extent.end for one, extent in ends.items()},
            rows={one.index: counted.rows.get(one.index, 0) for one in ends},
            producer_id=numbering.producer_id,
            epoch=numbering.epoch,
            files=files,
            said=self._repeated_options(),
        )
        save_state(self.state, state)
        return state

    def _check_retention(self, cluster: Cluster, oldest_ms: int | None) -> None:
        """
        Refuse rows that the topic's retention would delete at once.
        """
        if oldest_ms is None:
            return
        names = ["retention.ms", "cleanup.policy"]
        [configs] = describe_configs(cluster, [ConfigResource("topic", self.topic.name)], names).values()
        found = {config.name: config.value or "" for config in configs}
        kept_ms = int(found.get("retention.ms") or _FOREVER)
        age_ms = time.time_ns() // 1_000_000 - oldest_ms
        if kept_ms != _FOREVER and "delete" in found.get("cleanup.policy", "delete") and age_ms > kept_ms:
            raise WrongOption(
                f"the oldest row is {age_ms // _DAY_MS:,} days old, and {self.topic.name} keeps records for "
                f"{kept_ms / _DAY_MS:,.3g} days (retention.ms={kept_ms}): it would be deleted at once. Change the "
                f"retention (kgateway configs set topic {self.topic.name} retention.ms=-1), or leave out --timestamp"
            )

    def _send(self, spark: SparkSession, state: State, placed: DataFrame) -> None:
        count = len(self.topic.parts)
        at_once = max(min(count, spark.sparkContext.defaultParallelism), 1)
        sending = self._sending(state, None if self.rate is None else self.rate / at_once)

        # A plain function: Spark would take the annotated __call__ for another kind of UDF.
        def send(batches: Any) -> Any:
            return sending(batches)

        self.report(f"{sum(state.rows.values()):,} rows for {self.topic.name}")
        with java_errors():
            self.form.ordered(placed, count).mapInArrow(send, RESULT).collect()

    def _sending(self, state: State, rate: float | None = None) -> BackfillTask:
        numbering = ProducerEpoch(state.producer_id, state.epoch)
        starts = dict(state.starts)
        return BackfillTask(self.bootstrap, self.patience_s, self.topic.name, starts, numbering, self.codec, rate)

    def _handed_over(self, cluster: Cluster, state: State) -> State:
        """
        Check that the log has all rows, and mark where live records begin.
        """
        found = {index: self._standing(cluster, state, index) for index in state.starts}
        for index, rows in state.rows.items():
            if found[index].rows < rows:
                partition = TopicPartition(self.topic.name, index)
                raise Unwritten(f"{partition} has {found[index].rows:,} rows of {rows:,}; run it again to continue")
        if self.marker:
            found = {index: self._marked(cluster, state, index) for index in state.starts}
        ends = {index: one.end for index, one in found.items()}
        commit_offsets(
            cluster, self.group, {TopicPartition(self.topic.name, index): end for index, end in ends.items()}
        )
        state = replace(state, handed_over=ends)
        save_state(self.state, state)
        return state

    def _standing(self, cluster: Cluster, state: State, index: int) -> Progress:
        return progress_of(cluster, TopicPartition(self.topic.name, index), state.starts[index], state.producer_id)

    def _marked(self, cluster: Cluster, state: State, index: int) -> Progress:
        """
        Append one more row, which is not from the files.
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

    def _ends(self, state: State) -> list[PartitionResult]:
        ended = []
        for index, end in sorted((state.handed_over or {}).items()):
            start, rows = state.starts[index], state.rows[index]
            ended.append(PartitionResult(index, rows, start, end, end - start - rows - int(self.marker)))
        return ended


def _numbering(cluster: Cluster) -> ProducerEpoch:
    """
    The producer identity that the backfill keeps for all its life.
    """
    connection = cluster.any_server()
    if not connection.serves(InitProducerIdRequest):
        raise WrongOption(f"{connection.address} does not support idempotent producers: rows could be duplicated")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    result = connection.ask(request, InitProducerIdResponse)
    refuse(result.error_code)
    return ProducerEpoch(result.producer_id, result.producer_epoch)
