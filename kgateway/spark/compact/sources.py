"""
What tables of latest values are made of: an archive, or a log itself.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.archive.archiving import identity_of
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import of_archive, of_log, path_of
from kgateway.spark.archive.manifest import Identity, Manifest
from kgateway.spark.failures import Unreadable
from kgateway.spark.place import Place
from kgateway.spark.planning import split
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.topics import Topics

ARCHIVE, LOG = "archive", "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """
    What there is, of which topic. Where `changes` is another number, records may have gone that were there.
    """

    kind: str
    identity: Identity
    extents: Mapping[int, Extent]
    changes: int = 0


def manifest_of(folder: Folder) -> Manifest:
    """
    What an archive has. Unreadable where there is none.
    """
    manifest = folder.manifests.newest()
    if manifest is None:
        raise Unreadable(f"there is no archive in {folder.path}: no manifest")
    return manifest


def by_partition(offsets: Mapping[int, int]) -> Column:
    """
    The one of the partition of a record; none where it has none.
    """
    pairs = [F.lit(number) for pair in offsets.items() for number in pair]
    return F.try_element_at(F.create_map(*pairs), F.col("partition"))


class ArchiveSource:
    """
    An archive, as it was when it was first looked at.
    """

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self._spark = spark
        self._folder = folder
        self._manifest = manifest_of(folder)

    def is_newest(self) -> bool:
        """
        Whether the archive is still as it was then.
        """
        return manifest_of(self._folder).number == self._manifest.number

    @cached_property
    def state(self) -> State:
        """
        What it has.
        """
        manifest = self._manifest
        extents = {index: Extent(manifest.of(index)[0].first, end) for index, end in manifest.ends.items()}
        return State(kind=ARCHIVE, identity=manifest.identity, extents=extents, changes=manifest.removals.count)

    def records(self, starts: Mapping[int, int]) -> DataFrame:
        """
        All from there on.
        """
        files = [file for file in self._manifest.files if file.count and file.last >= starts[file.partition]]
        found = of_archive(self._spark, self._folder, [path_of(self._folder, file) for file in files])
        return found.where(F.col("offset") >= by_partition(starts)) if files else found


class LogSource:
    """
    The log of a topic, up to where it ended when it was first looked at.
    """

    def __init__(self, spark: SparkSession, place: Place, topic: str, task_records: int) -> None:
        self._spark = spark
        self._place = place
        self._topic = topic
        self._task_records = task_records

    @cached_property
    def state(self) -> State:
        """
        What it has.
        """
        identity = identity_of(self._place, self._topic)
        with closing(self._place.open(planning=True)) as logs:
            found = logs.extents(Topics(names=(self._topic,)).partitions(logs))
        extents = {partition.index: extent for partition, extent in sorted(found.items())}
        return State(kind=LOG, identity=identity, extents=extents)

    def records(self, starts: Mapping[int, int]) -> DataFrame:
        """
        All from there on.
        """
        extents = self.state.extents
        whole = [OffsetRange(Partition(self._topic, index), starts[index], extents[index].end) for index in extents]
        return of_log(self._spark, self._place, split(whole, 0, self._task_records), may_go=False)
