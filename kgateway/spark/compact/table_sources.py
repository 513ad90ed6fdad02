"""
The sources of tables of latest values: an archive, or a log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.offsets import Extent
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import archive_frame, log_frame, path_of
from kgateway.spark.archive.job import identity_of
from kgateway.spark.archive.manifest import Identity, Manifest
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.offset_range import OffsetRange, split
from kgateway.spark.query import LogLocation
from kgateway.topic_partition import TopicPartition

ARCHIVE, LOG = "archive", "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """
    The contents of a source. If `changes` differs, records may have been removed since.
    """

    kind: str
    identity: Identity
    extents: Mapping[int, Extent]
    changes: int = 0


def manifest_of(folder: Folder) -> Manifest:
    manifest = folder.manifests.newest()
    if manifest is None:
        raise Unreadable(f"there is no archive in {folder.path}: no manifest")
    return manifest


def by_partition(offsets: Mapping[int, int]) -> Column:
    """
    The value for a record's partition; null without one.
    """
    pairs = [F.lit(number) for pair in offsets.items() for number in pair]
    return F.try_element_at(F.create_map(*pairs), F.col("partition"))


class ArchiveSource:
    """
    An archive, in the state in which it was first read.
    """

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self._spark = spark
        self._folder = folder
        self._manifest = manifest_of(folder)

    def is_newest(self) -> bool:
        return manifest_of(self._folder).number == self._manifest.number

    @cached_property
    def state(self) -> SourceState:
        manifest = self._manifest
        extents = {index: Extent(manifest.of(index)[0].first, end) for index, end in manifest.ends.items()}
        return SourceState(kind=ARCHIVE, identity=manifest.identity, extents=extents, changes=manifest.removals.count)

    def records(self, starts: Mapping[int, int]) -> DataFrame:
        files = [file for file in self._manifest.files if file.count and file.last >= starts[file.partition]]
        found = archive_frame(self._spark, self._folder, [path_of(self._folder, file) for file in files])
        return found.where(F.col("offset") >= by_partition(starts)) if files else found


class LogSource:
    """
    The log of a topic, up to its end at the first read.
    """

    def __init__(self, spark: SparkSession, location: LogLocation, topic: str, task_records: int) -> None:
        self._spark = spark
        self._location = location
        self._topic = topic
        self._task_records = task_records

    @cached_property
    def state(self) -> SourceState:
        identity = identity_of(self._location, self._topic)
        found = self._location.extents(self._topic)
        extents = {partition.index: extent for partition, extent in sorted(found.items())}
        return SourceState(kind=LOG, identity=identity, extents=extents)

    def records(self, starts: Mapping[int, int]) -> DataFrame:
        extents = self.state.extents
        whole = [
            OffsetRange(TopicPartition(self._topic, index), starts[index], extents[index].end) for index in extents
        ]
        return log_frame(self._spark, self._location, split(whole, 0, self._task_records), may_go=False)
