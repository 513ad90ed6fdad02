"""
A table of the latest values of a topic: made from scratch, or of the table before and what came since, which gives the
same.
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

from kgateway.client.offsets import Partition
from kgateway.spark.archive.archiving import agreed
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import of_files
from kgateway.spark.archive.task import ended
from kgateway.spark.compact.keyless import check_keys, keys_seen
from kgateway.spark.compact.rule import latest
from kgateway.spark.compact.snapshots import Snapshot, Snapshots
from kgateway.spark.compact.sources import ARCHIVE, LOG, ArchiveSource, LogSource, State
from kgateway.spark.failures import Unreadable

_ATTEMPTS = 5
_TIMES = "spark.sql.parquet.outputTimestampType"


@dataclass(frozen=True, slots=True)
class Made:
    """
    The table that there is now, and how many records were read for it; none where it was there.
    """

    snapshot: Snapshot
    before: Snapshot | None
    read: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """
    What is wanted, and where.
    """

    snapshots: Snapshots
    keep_tombstones: bool = False
    keep_keyless: bool = False
    codec: str = "zstd"  # of the files

    def make(self, spark: SparkSession, source: ArchiveSource | LogSource) -> Made:
        """
        Make it, unless it is there. Taken where another job makes it just now.
        """
        with self.snapshots.alone():
            return self._make(spark, source)

    def _make(self, spark: SparkSession, source: ArchiveSource | LogSource) -> Made:
        self.snapshots.put_in_order()
        before, state = self.snapshots.newest(), source.state
        if before:
            state = replace(state, identity=agreed(before.state.identity, state.identity))
            _check_ends(before.state, state)
            if before == self._facts(before.number, state, before.counts):
                return Made(before, before)
        base = before if before and self._is_base(before, state) else None
        starts = {index: extent.start for index, extent in state.extents.items()}
        if base:
            starts |= {index: extent.end for index, extent in base.state.extents.items()}
        records = source.records(starts)
        if base:
            records = of_files(spark, self.snapshots.files(base)).unionByName(records)
        number = before.number + 1 if before else 1
        made = self._made(spark, records, partial(self._facts, number, state))
        return replace(made, before=base)

    def _facts(self, number: int, state: State, counts: Mapping[int, int]) -> Snapshot:
        return Snapshot(
            number=number,
            state=state,
            keep_tombstones=self.keep_tombstones,
            keep_keyless=self.keep_keyless,
            counts=counts,
        )

    def _is_base(self, before: Snapshot, state: State) -> bool:
        """
        Whether it gives the same to go on from there as to begin anew. An archive has all that it had, unless it was
        compacted; a log may have lost tombstones that nobody has read.
        """
        was, now = before.state, state.extents
        if (was.kind, was.changes) != (ARCHIVE, state.changes) or state.kind != ARCHIVE:
            return False
        went_on = [
            index in now and now[index].start == extent.start and now[index].end >= extent.end
            for index, extent in was.extents.items()
        ]
        return all(went_on) and before == self._facts(before.number, was, before.counts)

    def _made(self, spark: SparkSession, records: DataFrame, facts: Any) -> Made:
        making = self.snapshots.making()
        records, seen = keys_seen(records)
        spark.conf.set(_TIMES, "TIMESTAMP_MICROS")  # which not only Spark reads
        try:
            found = latest(records, keep_tombstones=self.keep_tombstones)
            found.write.option("compression", self.codec).parquet(f"file:{making}")
            if not self.keep_keyless:
                check_keys(seen.get)
            snapshot = facts(_counted(spark, making))
            self.snapshots.publish(snapshot, making)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return Made(snapshot, None, seen.get["read"])


def _check_ends(was: State, now: State) -> None:
    if now.kind == LOG:
        for index, (_, end) in was.extents.items():
            if index not in now.extents or now.extents[index].end < end:
                raise ended(Partition(now.identity.topic, index), end - 1)


def _counted(spark: SparkSession, made: Path) -> dict[int, int]:
    rows = of_files(spark, sorted(made.glob("*.parquet")), ["partition"]).groupBy("partition").count().collect()
    return {row["partition"]: row["count"] for row in rows}


def made_of_archive(table: Table, spark: SparkSession, folder: Folder) -> Made:
    """
    The table of what an archive has; again, where a job that works on the archive has moved what was being read.
    """
    for _ in range(_ATTEMPTS):
        source = ArchiveSource(spark, folder)
        try:
            return table.make(spark, source)
        except (Py4JJavaError, PySparkException, Unreadable):
            if source.is_newest():
                raise
    raise Unreadable(f"the archive in {folder.path} changes faster than it can be read")
