"""
Whether compaction has removed from an archive only what it should, as far as the log still has it. A record that the
log has and the archive has not is rightly gone where a later one of its key is in the archive, or was, and is rightly
gone itself; or where it is older than compaction has said, in the manifest, that records or tombstones go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.archive.checking import Finding, spans
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import of_archive, of_log, path_of
from kgateway.spark.archive.manifest import Manifest
from kgateway.spark.compact.rule import TOMBSTONE, has_newer, older
from kgateway.spark.place import Place
from kgateway.spark.planning import split
from kgateway.spark.ranges import OffsetRange

_TASK_RECORDS = 1 << 20
_NAMED_MAX = 1_000  # offsets of a partition, of which some are shown
_PLACE = ("partition", "offset")


@dataclass(frozen=True, slots=True)
class Proof:
    """
    Of an archive whose files are what they say, beside the log that is there.
    """

    spark: SparkSession
    folder: Folder
    manifest: Manifest
    place: Place
    extents: Mapping[int, Extent]

    def run(self) -> tuple[int, list[Finding]]:
        """
        How many records are rightly gone, and which are not.
        """
        judged = self._judged().cache()
        try:
            counts = {row["is_right"]: row["count"] for row in judged.groupBy("is_right").count().collect()}
            return counts.get(True, 0), [*self._findings(judged)] if counts.get(False) else []
        finally:
            judged.unpersist()

    def _judged(self) -> DataFrame:
        """
        What is gone, and whether that is right.
        """
        archived, removals = self._archived(), self.manifest.removals
        gone = self._logged().join(archived, [*_PLACE], "left_anti").withColumn("is_gone", F.lit(True))
        every = gone.unionByName(archived.withColumn("is_gone", F.lit(False)), allowMissingColumns=True)
        is_old = older(removals.before_ms) | (F.col("is_tombstone") & older(removals.tombstones_before_ms))
        return every.withColumn("is_right", has_newer() | is_old).where("is_gone").select(*_PLACE, "is_right")

    def _archived(self) -> DataFrame:
        paths = [path_of(self.folder, file) for file in self.manifest.files if file.count]
        return of_archive(self.spark, self.folder, paths, [*_PLACE, "key"])

    def _logged(self) -> DataFrame:
        """
        What the log has where compaction has removed something.
        """
        topic, found = self.manifest.identity.topic, list[OffsetRange]()
        for file in self.manifest.files:
            extent = self.extents.get(file.partition)
            if file.removed and extent:
                start, end = max(file.first, extent.start), min(file.last + 1, extent.end)
                found.append(OffsetRange(Partition(topic, file.partition), start, end))
        records = of_log(self.spark, self.place, split(found, 0, _TASK_RECORDS), may_go=True)
        return records.select(*_PLACE, "key", "timestamp", F.expr(TOMBSTONE).alias("is_tombstone"))

    def _findings(self, judged: DataFrame) -> Iterator[Finding]:
        wrong = judged.where("not is_right")
        counts = {row["partition"]: row["count"] for row in wrong.groupBy("partition").count().collect()}
        for index, count in sorted(counts.items()):
            named = wrong.where(F.col("partition") == index).orderBy("offset").limit(_NAMED_MAX).collect()
            others = f", and {count - len(named):,} more," if count > len(named) else ""
            place = str(Partition(self.manifest.identity.topic, index))
            reason = "gone, as if by compaction, and the archive has no later record of their keys"
            yield Finding(place, f"{spans(row['offset'] for row in named)}{others} {reason}")
