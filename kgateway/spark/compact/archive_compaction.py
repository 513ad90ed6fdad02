"""
Compacts an archive in place. By key, as Kafka compacts its logs: a record is removed if the archive has a later one of
its key. By time, as retention does: everything before the first record that is not old is removed.

    _compacting/...        the offsets to remove, as Spark has found them

Only the start of a partition is touched, up to the first file with a record that is not old, so that no tombstone is
removed before the records that it deletes. Some files at a time are written again, from the start on, and each time a
manifest replaces them. A killed job has done a part of the work, and the next one does the rest.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import archive_frame, path_of
from kgateway.spark.archive.job import check_tiles, take_over
from kgateway.spark.archive.latest_rule import check_keys, keys_seen, removed_by_key
from kgateway.spark.archive.manifest import File, Gap, Removals
from kgateway.spark.archive.parquet import Target
from kgateway.spark.archive.task import chunks, run_all
from kgateway.spark.compact.table_sources import by_partition, manifest_of
from kgateway.spark.compact.tasks import RewriteTask, ScanTask, write_offsets

FOLDER = "_compacting"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionGoal:
    by_key: bool
    before_ms: int | None = None
    tombstones_before_ms: int | None = None
    keep_keyless: bool = False


class Compaction:
    """
    The compaction of one archive. One job at a time writes to it.
    """

    def __init__(self, spark: SparkSession, folder: Folder, aim: CompactionGoal, codec: str = "zstd") -> None:
        self._spark = spark
        self._folder = folder
        self._aim = aim
        self._codec = codec  # of files that are written again
        self._ends: dict[int, int] = {}  # before which records may be removed, by partition
        self._going: tuple[PurePath, ...] = ()
        self.manifest = take_over(folder, manifest_of(folder))
        self._clear()

    def look(self) -> Iterator[tuple[int, int]]:
        """
        Find old records; yields how many of the files are done.
        """
        files, since = self.manifest.files, list[int]()
        for some in chunks(self._spark, files):
            yield len(since), len(files)
            since += run_all(self._spark, [ScanTask(self._folder, file, self._aim.before_ms) for file in some])
        found = {file.name: first for file, first in zip(files, since, strict=True)}
        self._ends = {partition: self._end(self.manifest.of(partition), found) for partition in self.manifest.ends}

    def plan(self) -> None:
        """
        Find the records to remove. Unreadable where some have no key, and need one.
        """
        try:
            if self._old_files():
                self._plan()
        except BaseException:
            self._clear()
            raise

    def write(self) -> Iterator[tuple[int, int]]:
        """
        Remove the records; yields how many of the files are done.
        """
        files = self._old_files() if self._going else []
        target = Target(self._folder, self.manifest.identity, 0, self._codec)
        done = 0
        for some in chunks(self._spark, files):
            yield done, len(files)
            made = run_all(self._spark, [RewriteTask(target, file, self._going) for file in some])
            changed = {file.name: new for file, new in zip(some, made, strict=True) if new}
            if changed:
                self._commit([file for file in some if file.name in changed], [*changed.values()])
            done += len(some)
        self._clear()

    def _end(self, tiles: Sequence[File | Gap], first_since: Mapping[str, int]) -> int:
        """
        The offset before which records of a partition may be removed.
        """
        for tile in tiles:
            first = first_since[tile.name] if isinstance(tile, File) else tile.last + 1
            if first <= tile.last:
                return tile.first if self._aim.by_key else first
        return tiles[-1].last + 1

    def _old_files(self) -> list[File]:
        return [file for file in self.manifest.files if file.count and file.first < self._ends[file.partition]]

    def _plan(self) -> None:
        if not self._aim.by_key:
            self._note(self._records(self._old_files(), []))
            return
        known = [] if self._aim.tombstones_before_ms is None else ["value", "timestamp"]
        files = [file for file in self.manifest.files if file.count]
        records, seen = keys_seen(self._records(files, ["key", *known]))
        self._note(removed_by_key(records, self._aim.tombstones_before_ms))
        if not self._aim.keep_keyless:
            check_keys(seen.get)

    def _records(self, files: Sequence[File], columns: Sequence[str]) -> DataFrame:
        paths = [path_of(self._folder, file) for file in files]
        return archive_frame(self._spark, self._folder, paths, ["partition", "offset", *columns])

    def _note(self, records: DataFrame) -> None:
        """
        Write the offsets of records that are old enough into files, for the tasks that remove them.
        """
        going = records.where(F.col("offset") < by_partition(self._ends))
        place = self._folder.path / FOLDER / uuid.uuid4().hex
        self._going = write_offsets(going, self._folder.store, place)

    def _commit(self, gone: Sequence[File], made: Sequence[File]) -> None:
        was, aim = self.manifest.removals, self._aim
        removals = Removals(
            count=was.count + 1,
            before_ms=was.before_ms if aim.by_key else _later(was.before_ms, aim.before_ms),
            tombstones_before_ms=_later(was.tombstones_before_ms, aim.tombstones_before_ms),
        )
        changed = replace(self.manifest.with_tiles(made, gone), planned=self.manifest.planned, removals=removals)
        check_tiles(changed)
        self.manifest = self._folder.manifests.commit(changed)
        self._folder.publish(self.manifest)

    def _clear(self) -> None:
        self._folder.store.remove_folder(self._folder.path / FOLDER)


def _later(one: int | None, other: int | None) -> int | None:
    return max((time_ms for time_ms in (one, other) if time_ms is not None), default=None)
