"""
Verifies an archive: each offset is in one file, each file has what was written, there are no other files, and the log
agrees.

Compaction may have removed only what it should, as far as the log can tell. A record that the log has and the archive
has not was rightly removed where the archive has a later one of its key, or had one that was rightly removed itself; or
where it is older than the times in the manifest before which records or tombstones could be removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.offsets import Extent
from kgateway.spark.archive.file_check import FileCheck, FileResult, Finding, spans
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import archive_frame, log_frame, path_of
from kgateway.spark.archive.job import identity_of, same_identity
from kgateway.spark.archive.latest_rule import TOMBSTONE, has_newer, older
from kgateway.spark.archive.manifest import Gap, Manifest, ManifestDamaged, Tile, holes
from kgateway.spark.archive.task import chunks, run_all
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.offset_range import OffsetRange, split
from kgateway.spark.query import LogLocation
from kgateway.topic_partition import TopicPartition

_TASK_RECORDS = 1 << 20
_NAMED_MAX = 1_000  # offsets that are collected for one partition
_PLACE = ("partition", "offset")


@dataclass(frozen=True, slots=True)
class CompactionProof:
    """
    Proves removals, in an archive whose files are correct, by the log.
    """

    spark: SparkSession
    folder: Folder
    manifest: Manifest
    location: LogLocation
    extents: Mapping[int, Extent]

    def run(self) -> tuple[int, list[Finding]]:
        """
        How many records were rightly removed, and which were not.
        """
        judged = self._judged().cache()
        try:
            counts = {row["is_right"]: row["count"] for row in judged.groupBy("is_right").count().collect()}
            return counts.get(True, 0), [*self._findings(judged)] if counts.get(False) else []
        finally:
            judged.unpersist()

    def _judged(self) -> DataFrame:
        """
        The removed records, and whether each was rightly removed.
        """
        archived, removals = self._archived(), self.manifest.removals
        gone = self._logged().join(archived, [*_PLACE], "left_anti").withColumn("is_gone", F.lit(True))
        every = gone.unionByName(archived.withColumn("is_gone", F.lit(False)), allowMissingColumns=True)
        is_old = older(removals.before_ms) | (F.col("is_tombstone") & older(removals.tombstones_before_ms))
        return every.withColumn("is_right", has_newer() | is_old).where("is_gone").select(*_PLACE, "is_right")

    def _archived(self) -> DataFrame:
        paths = [path_of(self.folder, file) for file in self.manifest.files if file.count]
        return archive_frame(self.spark, self.folder, paths, [*_PLACE, "key"])

    def _logged(self) -> DataFrame:
        """
        Records of the log at offsets that compaction has removed.
        """
        topic, found = self.manifest.identity.topic, list[OffsetRange]()
        for file in self.manifest.files:
            extent = self.extents.get(file.partition)
            if file.removed and extent:
                start, end = max(file.first, extent.start), min(file.last + 1, extent.end)
                found.append(OffsetRange(TopicPartition(topic, file.partition), start, end))
        records = log_frame(self.spark, self.location, split(found, 0, _TASK_RECORDS), may_go=True)
        return records.select(*_PLACE, "key", "timestamp", F.expr(TOMBSTONE).alias("is_tombstone"))

    def _findings(self, judged: DataFrame) -> Iterator[Finding]:
        wrong = judged.where("not is_right")
        counts = {row["partition"]: row["count"] for row in wrong.groupBy("partition").count().collect()}
        for index, count in sorted(counts.items()):
            named = wrong.where(F.col("partition") == index).orderBy("offset").limit(_NAMED_MAX).collect()
            others = f", and {count - len(named):,} more," if count > len(named) else ""
            place = str(TopicPartition(self.manifest.identity.topic, index))
            reason = "missing although the archive has no later record with the same key"
            yield Finding(place, f"{spans(row['offset'] for row in named)}{others} {reason}")


@dataclass(frozen=True, slots=True)
class Outcome:
    manifest: Manifest | None
    findings: Sequence[Finding]
    compared: int = 0
    alone: int = 0
    proven: int = 0  # records that compaction has removed rightly, as the log shows

    @property
    def faults(self) -> int:
        return sum(finding.is_fault for finding in self.findings)


class Verification:
    """
    Checks the archive of one topic, and compares it with the log if there is a place to find it.
    """

    def __init__(self, spark: Any, folder: Folder, topic: str, location: LogLocation | None) -> None:
        self._spark = spark
        self._folder = folder
        self._topic = topic
        self._location = location

    def steps(self) -> Iterator[tuple[int, int] | Outcome]:
        """
        How many files are checked, of how many; at last the outcome.
        """
        try:
            manifest = self._folder.manifests.newest()
        except ManifestDamaged as error:
            yield Outcome(None, [Finding("manifest", str(error))])
            return
        if manifest is None:
            yield Outcome(None, [Finding("manifest", f"there is no archive in {self._folder.path}: no manifest")])
            return
        findings = [*self._of_folder(manifest), *_of_tiles(manifest)]
        extents = self._extents(manifest, findings)
        findings += _of_extents(manifest, extents)
        checked = list[FileResult]()
        checks = self._checks(manifest, extents)
        for some in chunks(self._spark, checks):
            yield len(checked), len(checks)
            checked += run_all(self._spark, some)
        for one in checked:
            findings += one.findings
        proven = self._proven(manifest, extents, findings)
        yield Outcome(
            manifest, findings, sum(one.compared for one in checked), sum(one.alone for one in checked), proven
        )

    def _proven(self, manifest: Manifest, extents: Mapping[int, Extent], findings: list[Finding]) -> int:
        """
        How many of the records that compaction has removed were rightly removed.
        """
        if not (self._location and extents and any(file.removed for file in manifest.files)):
            return 0
        if any(finding.is_fault for finding in findings):
            reason = "records that compaction removed are only checked if nothing else is wrong"
            findings.append(Finding(manifest.identity.topic, reason, is_fault=False))
            return 0
        proven, wrong = CompactionProof(self._spark, self._folder, manifest, self._location, extents).run()
        findings += wrong
        return proven

    def _checks(self, manifest: Manifest, extents: Mapping[int, Extent]) -> list[FileCheck]:
        location = self._location if extents else None
        return [
            FileCheck(self._folder, manifest.identity, file, location, extents.get(file.partition))
            for file in manifest.files
        ]

    def _extents(self, manifest: Manifest, findings: list[Finding]) -> dict[int, Extent]:
        """
        The log's extents; empty if it is no longer the archived log.
        """
        if self._location is None:
            return {}
        there = identity_of(self._location, self._topic)
        try:
            same_identity(manifest.identity, there)
        except Unreadable as error:
            findings.append(Finding("log", str(error)))
            return {}
        return {partition.index: extent for partition, extent in self._location.extents(self._topic).items()}

    def _of_folder(self, manifest: Manifest) -> list[Finding]:
        found = []
        for name in self._folder.strangers(manifest):
            if name in manifest.leaving:
                reason = "another file has replaced it, and a job was killed before removing it: archive again"
            else:
                reason = "not a file of the archive, although readers of the folder may read it as one"
            found.append(Finding(name, reason))
        staged = self._folder.staged_names()
        waiting = {file.name for file in manifest.files}.intersection(staged)
        for name in sorted(waiting):
            reason = "part of the archive, but not where readers of the folder look: archive again"
            found.append(Finding(name, reason, is_fault=False))
        if len(staged) > len(waiting):
            reason = (
                f"{len(staged) - len(waiting)} files are being written, or were being written when a job was killed"
            )
            found.append(Finding("_staged", reason, is_fault=False))
        return found


def _of_tiles(manifest: Manifest) -> Iterator[Finding]:
    for partition in manifest.ends:
        place = f"{manifest.identity.topic}-{partition}"
        for one, other in holes(list[Tile](manifest.of(partition))):
            is_hole = other.first > one.last
            first, last = (one.last + 1, other.first - 1) if is_hole else (other.first, one.last)
            yield Finding(place, f"offsets {first} to {last} are in {'no file' if is_hole else 'two files'}")
        for tile in manifest.of(partition):
            if isinstance(tile, Gap):
                yield Finding(
                    place, f"{tile.range} had been deleted from the log before they were archived", is_fault=False
                )


def _of_extents(manifest: Manifest, extents: Mapping[int, Extent]) -> Iterator[Finding]:
    """
    Findings if the log and the archive begin or end differently.
    """
    for index, (start, end) in sorted(extents.items()):
        place = str(TopicPartition(manifest.identity.topic, index))
        archived = manifest.ends.get(index)
        if archived is None:
            if end > start:
                yield Finding(place, f"offsets {start} to {end - 1} are not archived yet", is_fault=False)
            continue
        first = manifest.of(index)[0].first
        if start < min(first, end):
            yield Finding(place, f"the archive begins with offset {first}, but the log begins with {start}")
        if end < archived:
            yield Finding(place, f"the log ends at offset {end}, but the archive has it up to {archived - 1}")
        if end > archived:
            yield Finding(place, f"offsets {archived} to {end - 1} are not archived yet", is_fault=False)
        for tile in manifest.of(index):
            if isinstance(tile, Gap) and tile.last >= start:
                yield Finding(place, f"the log has some of {tile.range}, which the archive recorded as deleted")
    missing = manifest.ends.keys() - extents.keys() if extents else set()
    for index in sorted(missing):
        yield Finding(str(TopicPartition(manifest.identity.topic, index)), "the log has no such partition")
