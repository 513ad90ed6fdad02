"""
Archives a topic, round after round: the plan is written down, tasks write the files, and the next manifest makes them
part of the archive. `folder` says how the next job repairs what a killed one has left.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from kgateway.client.offsets import Extent
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Gap, Identity, Manifest, Tile, holes, tile_of_name
from kgateway.spark.archive.parquet import Target
from kgateway.spark.archive.reader_lease import remove_stale_leases
from kgateway.spark.archive.task import ArchiveTask, MergeTask, log_ended, mergeable, run_all
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.broker_logs import ServerLogs
from kgateway.spark.logs.offset_range import OffsetRange, limited, split
from kgateway.spark.query import LogLocation
from kgateway.spark.readers.topic_selection import TopicSelection
from kgateway.topic_partition import TopicPartition


def take_over(folder: Folder, found: Manifest) -> Manifest:
    """
    Take over the archive, so that no other job can change it any more, and repair it. Files that the last plan covers
    are kept.
    """
    folder.publish(found)
    taken = folder.manifests.commit(replace(found, leaving=()))
    folder.clean([name for name in folder.staged_names() if _is_planned(taken, name)])
    remove_stale_leases(folder)
    return taken


def _is_planned(manifest: Manifest, name: str) -> bool:
    tile = tile_of_name(manifest.identity.topic, name)
    return tile is not None and any(
        partition == tile.partition and start <= tile.first and tile.last < end
        for partition, start, end in manifest.planned
    )


class ArchiveJob:
    """
    The archive of one topic. One job at a time writes to it.
    """

    def __init__(self, spark: Any, location: LogLocation, target: Target, task_records: int) -> None:
        self._spark = spark
        self._location = location
        self._target = target
        self._task_records = task_records
        self._topic = target.identity.topic
        self.manifest = self._taken_over()

    def extents(self) -> dict[TopicPartition, Extent]:
        found = self._location.extents(self._topic)
        for index, end in self.manifest.ends.items():
            partition = TopicPartition(self._topic, index)
            if partition not in found:
                raise Unreadable(f"{partition} does not exist any more, but the archive has it up to offset {end - 1}")
            if found[partition].end < end:
                raise log_ended(partition, end - 1)
        return found

    def rounds(self, extents: Mapping[TopicPartition, Extent]) -> Iterator[int]:
        """
        Archive everything up to these ends; yields how many offsets are left after each round.
        """
        ends = {partition: extent.end for partition, extent in extents.items()}
        yield self._left(extents, ends)
        while self.manifest.planned or self._left(extents, ends):
            self._plan(extents, ends)
            self._write()
            yield self._left(extents, ends)

    def merge(self) -> int:
        """
        Merge small files where there are enough of them; returns how many were merged.
        """
        merged = 0
        while groups := mergeable(self.manifest, self._target.file_bytes):
            made = run_all(self._spark, [MergeTask(self._target, tuple(group)) for group in groups])
            gone = [file for group in groups for file in group]
            self._commit(self.manifest.with_tiles(made, gone))
            merged += len(gone)
        return merged

    def _taken_over(self) -> Manifest:
        folder = self._target.folder
        found = folder.manifests.newest() or Manifest(identity=self._target.identity)
        return take_over(folder, replace(found, identity=same_identity(found.identity, self._target.identity)))

    def _starts(self, extents: Mapping[TopicPartition, Extent]) -> dict[TopicPartition, int]:
        ends = self.manifest.ends
        return {one: ends.get(one.index, extent.start) for one, extent in extents.items()}

    def _left(self, extents: Mapping[TopicPartition, Extent], ends: Mapping[TopicPartition, int]) -> int:
        starts = self._starts(extents)
        return sum(max(end - starts[one], 0) for one, end in ends.items())

    def _plan(self, extents: Mapping[TopicPartition, Extent], ends: Mapping[TopicPartition, int]) -> None:
        if self.manifest.planned:  # a killed job has left its plan
            return
        starts = self._starts(extents)
        gone = [
            Gap(partition=one.index, first=start, last=min(extents[one].start, ends[one]) - 1)
            for one, start in starts.items()
            if start < min(extents[one].start, ends[one])
        ]
        starts |= {TopicPartition(self._topic, gap.partition): gap.last + 1 for gap in gone}
        ends = {one: max(end, starts[one]) for one, end in ends.items()}
        most = self._task_records * int(self._spark.sparkContext.defaultParallelism)
        ends = limited(starts, ends, most)
        ranges = split((OffsetRange(one, starts[one], ends[one]) for one in sorted(ends)), 0, self._task_records)
        planned = tuple((one.partition.index, one.start, one.end) for one in ranges)
        self._commit(replace(self.manifest.with_tiles(gone), planned=planned))

    def _write(self) -> None:
        ranges = [OffsetRange(TopicPartition(self._topic, index), *ends) for index, *ends in self.manifest.planned]
        written = run_all(self._spark, [ArchiveTask(self._location, self._target, of) for of in ranges])
        self._commit(self.manifest.with_tiles([tile for tiles in written for tile in tiles]))

    def _commit(self, manifest: Manifest) -> None:
        check_tiles(manifest)
        folder = self._target.folder
        self.manifest = folder.manifests.commit(manifest)
        folder.publish(self.manifest)


def check_tiles(manifest: Manifest) -> None:
    """
    Fail rather than write an archive with a hole, which would be a bug.
    """
    for partition in manifest.ends:
        found = holes(list[Tile](manifest.of(partition)))
        if found:
            raise AssertionError(f"{manifest.identity.topic}-{partition}: {found[0]}")


def identity_of(location: LogLocation, topic: str) -> Identity:
    """
    Which topic has this name now.
    """
    committed_only = bool(location.servers and location.servers.committed_only)
    isolation = "read_committed" if committed_only else "read_uncommitted"
    if location.servers is None:
        return Identity(topic=topic, isolation=isolation)
    with closing(ServerLogs(location.servers)) as servers:
        TopicSelection(names=(topic,)).partitions(servers)
        topic_id = servers.cluster.topic_ids.get(topic, b"")
        return Identity(
            topic=topic,
            topic_id=topic_id.hex() if any(topic_id) else "",
            cluster_id=servers.cluster.cluster_id or "",
            isolation=isolation,
        )


def same_identity(archived: Identity, there: Identity) -> Identity:
    """
    The archive's identity, after checking that the topic which exists now is the one that was archived.
    """
    if archived.topic != there.topic:
        raise Unreadable(f"this is the archive of topic {archived.topic}, not of {there.topic}")
    if archived.cluster_id and there.cluster_id and archived.cluster_id != there.cluster_id:
        raise Unreadable(
            f"the archive is of topic {there.topic} in cluster {archived.cluster_id}, but the given server belongs to "
            f"cluster {there.cluster_id}: name another folder"
        )
    if archived.topic_id and there.topic_id and archived.topic_id != there.topic_id:
        raise Unreadable(
            f"topic {there.topic} was deleted and recreated since it was archived: name another folder for the new "
            "topic; the archive of the old one stays as it is"
        )
    if archived.isolation != there.isolation:
        raise Unreadable(
            f"the archive was begun with kafka.isolation.level={archived.isolation}, and can be continued only with "
            "that"
        )
    return Identity(
        topic=archived.topic,
        topic_id=archived.topic_id or there.topic_id,
        cluster_id=archived.cluster_id or there.cluster_id,
        isolation=archived.isolation,
    )
