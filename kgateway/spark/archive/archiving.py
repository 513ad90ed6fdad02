"""
A topic into an archive, round after round: what is to be written is decided and noted, tasks write it, and the manifest
makes it part of the archive. `folder` says what becomes of it when a job is killed in between.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.archive.manifest import Identity, Manifest
from kgateway.spark.archive.merging import Merge, mergeable
from kgateway.spark.archive.parquet import Target
from kgateway.spark.archive.running import run_all
from kgateway.spark.archive.takeover import taken_over
from kgateway.spark.archive.task import Task, ended
from kgateway.spark.archive.tiles import Gap, Tile, holes
from kgateway.spark.failures import Unreadable
from kgateway.spark.place import Place
from kgateway.spark.planning import limited, split
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.servers import ServerLogs
from kgateway.spark.topics import Topics


class Archiving:
    """
    The archive of one topic, which nobody else writes to meanwhile.
    """

    def __init__(self, spark: Any, place: Place, target: Target, task_records: int) -> None:
        self._spark = spark
        self._place = place
        self._target = target
        self._task_records = task_records
        self._topic = target.identity.topic
        self.manifest = self._taken_over()

    def extents(self) -> dict[Partition, Extent]:
        """
        What the log has now.
        """
        with closing(self._place.open(planning=True)) as logs:
            found = logs.extents(Topics(names=(self._topic,)).partitions(logs))
        for index, end in self.manifest.ends.items():
            partition = Partition(self._topic, index)
            if partition not in found:
                raise Unreadable(f"{partition} is not there any more, and the archive has it up to offset {end - 1}")
            if found[partition].end < end:
                raise ended(partition, end - 1)
        return found

    def rounds(self, extents: Mapping[Partition, Extent]) -> Iterator[int]:
        """
        Archive all that there was then; how many offsets are left, after each round.
        """
        ends = {partition: extent.end for partition, extent in extents.items()}
        yield self._left(extents, ends)
        while self.manifest.planned or self._left(extents, ends):
            self._plan(extents, ends)
            self._write()
            yield self._left(extents, ends)

    def merge(self) -> int:
        """
        Put small files together, where there are enough of them; how many were.
        """
        merged = 0
        while groups := mergeable(self.manifest, self._target.file_bytes):
            made = run_all(self._spark, [Merge(self._target, tuple(group)) for group in groups])
            gone = [file for group in groups for file in group]
            self._commit(self.manifest.with_tiles(made, gone))
            merged += len(gone)
        return merged

    def _taken_over(self) -> Manifest:
        """
        The archive as it was left, put in order.
        """
        folder = self._target.folder
        found = folder.manifests.newest() or Manifest(identity=self._target.identity)
        return taken_over(folder, replace(found, identity=agreed(found.identity, self._target.identity)))

    def _starts(self, extents: Mapping[Partition, Extent]) -> dict[Partition, int]:
        ends = self.manifest.ends
        return {one: ends.get(one.index, extent.start) for one, extent in extents.items()}

    def _left(self, extents: Mapping[Partition, Extent], ends: Mapping[Partition, int]) -> int:
        starts = self._starts(extents)
        return sum(max(end - starts[one], 0) for one, end in ends.items())

    def _plan(self, extents: Mapping[Partition, Extent], ends: Mapping[Partition, int]) -> None:
        if self.manifest.planned:  # by a job that was killed
            return
        starts = self._starts(extents)
        gone = [
            Gap(partition=one.index, first=start, last=min(extents[one].start, ends[one]) - 1)
            for one, start in starts.items()
            if start < min(extents[one].start, ends[one])
        ]
        starts |= {Partition(self._topic, gap.partition): gap.last + 1 for gap in gone}
        ends = {one: max(end, starts[one]) for one, end in ends.items()}
        most = self._task_records * int(self._spark.sparkContext.defaultParallelism)
        ends = limited(starts, ends, most)
        ranges = split((OffsetRange(one, starts[one], ends[one]) for one in sorted(ends)), 0, self._task_records)
        planned = tuple((one.partition.index, one.start, one.end) for one in ranges)
        self._commit(replace(self.manifest.with_tiles(gone), planned=planned))

    def _write(self) -> None:
        ranges = [OffsetRange(Partition(self._topic, index), *ends) for index, *ends in self.manifest.planned]
        written = run_all(self._spark, [Task(self._place, self._target, of) for of in ranges])
        self._commit(self.manifest.with_tiles([tile for tiles in written for tile in tiles]))

    def _commit(self, manifest: Manifest) -> None:
        check_tiles(manifest)
        folder = self._target.folder
        self.manifest = folder.manifests.commit(manifest)
        folder.publish(self.manifest)


def check_tiles(manifest: Manifest) -> None:
    """
    No archive may be written that has a hole; that would be a mistake of this program.
    """
    for partition in manifest.ends:
        found = holes(list[Tile](manifest.of(partition)))
        if found:
            raise AssertionError(f"{manifest.identity.topic}-{partition}: {found[0]}")


def identity_of(place: Place, topic: str) -> Identity:
    """
    Which topic is there now under this name.
    """
    committed_only = bool(place.servers and place.servers.committed_only)
    isolation = "read_committed" if committed_only else "read_uncommitted"
    if place.servers is None:
        return Identity(topic=topic, isolation=isolation)
    with closing(ServerLogs(place.servers)) as servers:
        Topics(names=(topic,)).partitions(servers)
        topic_id = servers.leaders.topic_ids.get(topic, b"")
        return Identity(
            topic=topic,
            topic_id=topic_id.hex() if any(topic_id) else "",
            cluster_id=servers.leaders.cluster_id or "",
            isolation=isolation,
        )


def agreed(archived: Identity, there: Identity) -> Identity:
    """
    The identity of an archive, once it is sure that what is there is what it is of.
    """
    if archived.topic != there.topic:
        raise Unreadable(f"this is the archive of topic {archived.topic}, not of {there.topic}")
    if archived.cluster_id and there.cluster_id and archived.cluster_id != there.cluster_id:
        raise Unreadable(
            f"the archive is of topic {there.topic} in cluster {archived.cluster_id}, and the server that is named is "
            f"of cluster {there.cluster_id}: name another folder"
        )
    if archived.topic_id and there.topic_id and archived.topic_id != there.topic_id:
        raise Unreadable(
            f"topic {there.topic} was deleted and made anew since it was archived: name another folder for what it has "
            "now; the archive of the earlier one stays as it is"
        )
    if archived.isolation != there.isolation:
        raise Unreadable(
            f"the archive was begun with kafka.isolation.level={archived.isolation}, and goes on with that only"
        )
    return Identity(
        topic=archived.topic,
        topic_id=archived.topic_id or there.topic_id,
        cluster_id=archived.cluster_id or there.cluster_id,
        isolation=archived.isolation,
    )
