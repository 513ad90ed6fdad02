"""
A table of the latest values of a topic, built from scratch or from the previous table and the records since, with the
same result.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import file_frame
from kgateway.spark.archive.job import same_identity
from kgateway.spark.archive.latest_rule import check_keys, keys_seen, latest
from kgateway.spark.archive.task import log_ended
from kgateway.spark.compact.table_snapshots import Snapshot, Snapshots
from kgateway.spark.compact.table_sources import ARCHIVE, LOG, ArchiveSource, LogSource, SourceState
from kgateway.spark.errors import Unreadable
from kgateway.topic_partition import TopicPartition

_ATTEMPTS = 5
_TIMES = "spark.sql.parquet.outputTimestampType"


@dataclass(frozen=True, slots=True)
class TableResult:
    """
    The newest table, and the number of records read for it; None if it was up to date.
    """

    snapshot: Snapshot
    before: Snapshot | None
    read: int | None = None


@dataclass(frozen=True, slots=True)
class LatestTable:
    snapshots: Snapshots
    keep_tombstones: bool = False
    keep_keyless: bool = False
    codec: str = "zstd"  # of the files

    def make(self, spark: SparkSession, source: ArchiveSource | LogSource) -> TableResult:
        """
        Build the table, unless it is up to date; ArchiveTaken if another job is building it.
        """
        with self.snapshots.lock():
            return self._make(spark, source)

    def _make(self, spark: SparkSession, source: ArchiveSource | LogSource) -> TableResult:
        self.snapshots.repair()
        before, state = self.snapshots.newest(), source.state
        if before:
            state = replace(state, identity=same_identity(before.state.identity, state.identity))
            _check_ends(before.state, state)
            if before == self._facts(before.number, state, before.counts):
                return TableResult(before, before)
        base = before if before and self._is_base(before, state) else None
        starts = {index: extent.start for index, extent in state.extents.items()}
        if base:
            starts |= {index: extent.end for index, extent in base.state.extents.items()}
        records = source.records(starts)
        if base:
            records = file_frame(spark, self.snapshots.files(base)).unionByName(records)
        number = before.number + 1 if before else 1
        made = self._made(spark, records, partial(self._facts, number, state))
        return replace(made, before=base)

    def _facts(self, number: int, state: SourceState, counts: Mapping[int, int]) -> Snapshot:
        return Snapshot(
            number=number,
            state=state,
            keep_tombstones=self.keep_tombstones,
            keep_keyless=self.keep_keyless,
            counts=counts,
        )

    def _is_base(self, before: Snapshot, state: SourceState) -> bool:
        """
        Whether the previous table can be continued. An archive keeps everything, unless it was compacted; a log may
        have lost tombstones that were never read.
        """
        was, now = before.state, state.extents
        if (was.kind, was.changes) != (ARCHIVE, state.changes) or state.kind != ARCHIVE:
            return False
        went_on = [
            index in now and now[index].start == extent.start and now[index].end >= extent.end
            for index, extent in was.extents.items()
        ]
        return all(went_on) and before == self._facts(before.number, was, before.counts)

    def _made(self, spark: SparkSession, records: DataFrame, facts: Any) -> TableResult:
        making = self.snapshots.new_folder()
        records, seen = keys_seen(records)
        spark.conf.set(_TIMES, "TIMESTAMP_MICROS")  # which other programs read too
        try:
            found = latest(records, keep_tombstones=self.keep_tombstones)
            found.write.option("compression", self.codec).parquet(f"file:{making}")
            if not self.keep_keyless:
                check_keys(seen.get)
            snapshot = facts(_counted(spark, making))
            self.snapshots.publish(snapshot, making)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return TableResult(snapshot, None, seen.get["read"])


def _check_ends(was: SourceState, now: SourceState) -> None:
    if now.kind == LOG:
        for index, (_, end) in was.extents.items():
            if index not in now.extents or now.extents[index].end < end:
                raise log_ended(TopicPartition(now.identity.topic, index), end - 1)


def _counted(spark: SparkSession, made: Path) -> dict[int, int]:
    rows = file_frame(spark, sorted(made.glob("*.parquet")), ["partition"]).groupBy("partition").count().collect()
    return {row["partition"]: row["count"] for row in rows}


def table_of_archive(table: LatestTable, spark: SparkSession, folder: Folder) -> TableResult:
    """
    Build the table of an archive, and retry if a job has replaced files meanwhile.
    """
    for _ in range(_ATTEMPTS):
        source = ArchiveSource(spark, folder)
        try:
            return table.make(spark, source)
        except (Py4JJavaError, PySparkException, Unreadable):
            if source.is_newest():
                raise
    raise Unreadable(f"the archive in {folder.path} changes faster than it can be read")
