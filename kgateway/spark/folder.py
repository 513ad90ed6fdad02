"""
Logs in a folder, of this machine or behind HTTP, read without their server: a kgateway's data folder, or Kafka's.

How far they may be read is the server's to say, if one is named: up to the high watermark, or the last stable offset.
Without a server that follows from how the folder was left:

 - after a stop in good order: to the end of the files
 - while a gateway runs, or after it died: as far as was written down that all is good (`kgateway.settled`, every few
   seconds), if the machine has not been started since; else as far as was synced (`recovery-point-offset-checkpoint`)
 - never behind what Kafka has noted as its high watermark (`replication-offset-checkpoint`)
"""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import cast

from kgateway.broker.log.checkpoints import SETTLED, SYNCED, Offsets, read_offsets
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder import CLEAN, this_boot
from kgateway.broker.log.folder_error import FolderError
from kgateway.broker.log.folder_meta import META, START
from kgateway.broker.log.kept_offsets import LOG_STARTS
from kgateway.broker.log.partition_folder import METADATA, topic_id_of
from kgateway.broker.log.start_file import read_start
from kgateway.client.offsets import Extent, Found, Partition
from kgateway.spark.aborted import Aborted
from kgateway.spark.aborted_index import aborted_in
from kgateway.spark.failures import TopicGone, Unreadable
from kgateway.spark.files import Files
from kgateway.spark.logs import Window
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.segments import Segments
from kgateway.spark.servers import ServerLogs
from kgateway.spark.times import first_at

_PARTITION = re.compile(r"([A-Za-z0-9._-]+)-([0-9]+)")
_WATERMARKS = "replication-offset-checkpoint"
_INTERNAL = "__"
_CLUSTER_ID = re.compile(rb"^cluster\.id=(\S+)\s*$", re.MULTILINE)


class FolderLogs:
    """
    The logs in one folder; which of it may be read is a server's to say, if there is one.
    """

    def __init__(
        self, path: PurePath, files: Files, servers: ServerLogs | None = None, *, committed_only: bool
    ) -> None:
        self._path = path
        self._files = files
        self._servers = servers
        self._committed_only = committed_only

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[Partition]]:
        if self._servers:
            return self._servers.partitions(topics)
        wanted = None if topics is None else set(topics)
        found = dict[str, list[Partition]]()
        for name in self._names():
            match = _PARTITION.fullmatch(name)
            if match and (match[1] in wanted if wanted is not None else not match[1].startswith(_INTERNAL)):
                found.setdefault(match[1], []).append(Partition(match[1], int(match[2])))
        return {topic: sorted(partitions) for topic, partitions in found.items()}

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        if self._servers:
            told = self._servers.extents(wanted)
            for partition, extent in told.items():
                if extent.end > extent.start:  # else it may have no folder yet
                    self._check_same(partition, self._servers)
            return told
        if self._committed_only:
            raise Unreadable(
                f"which transactions have ended is not known from the files in {self._path} alone: name their server "
                "by kafka.bootstrap.servers, or leave out kafka.isolation.level=read_committed"
            )
        names = self._names()
        return {one: self._extent(one, names) for one in wanted if str(one) in names}

    def at_time(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        if self._servers:
            return self._servers.at_time(wanted, timestamp_ms)
        extents = self.extents(wanted)
        return {one: first_at(self._segments(one), extents[one], timestamp_ms) for one in extents}

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        segments = self._segments(wanted.partition)
        try:
            aborted = aborted_in(segments, wanted.start, wanted.end) if self._committed_only else Aborted()
            for run in segments.windows(wanted.start, wanted.end):
                yield Window(run.batches, aborted, run.next_offset)
        except FileNotFoundError as error:
            raise TopicGone(f"{wanted.partition} is not in {self._path} any more") from error
        except OSError as error:
            raise Unreadable(f"{wanted.partition} in {self._path} cannot be read: {error.strerror or error}") from error

    def __str__(self) -> str:
        return str(self._servers or self._path)

    def close(self) -> None:
        if self._servers:
            self._servers.close()

    def _names(self) -> dict[str, int]:
        try:
            return self._files.names(self._path)
        except OSError as error:
            raise Unreadable(f"the folder {self._path} cannot be read: {error.strerror or error}") from error

    def _segments(self, partition: Partition) -> Segments:
        return Segments(self._files, self._path / str(partition))

    def _extent(self, partition: Partition, names: Collection[str]) -> Extent:
        place = (partition.topic, partition.index)
        segments = self._segments(partition)
        start = max((segments.bases() or [0])[0], self._offsets(LOG_STARTS).get(place, 0))
        end = segments.end_offset() if CLEAN in names else self._sure(names).get(place, 0)
        if _WATERMARKS in names:
            end = min(end, self._offsets(_WATERMARKS).get(place, 0))
        return Extent(start, max(start, end))

    def _sure(self, names: Collection[str]) -> Offsets:
        """
        How far each log is known to be good, as it is written down.
        """
        synced = self._offsets(SYNCED)
        with suppress(FolderError):
            if START in names and read_start(self._at(START), self._disk).is_of(this_boot()):
                settled = self._offsets(SETTLED)
                return {one: max(synced.get(one, 0), settled.get(one, 0)) for one in synced.keys() | settled.keys()}
        return synced

    def _offsets(self, name: str) -> Offsets:
        return read_offsets(self._at(name), self._disk) or {}

    def _at(self, name: str) -> Path:
        return cast(Path, self._path / name)  # of which nothing is asked here but to be read

    @property
    def _disk(self) -> Disk:
        return cast(Disk, self._files)  # of which nothing is asked here but to read a file

    def _check_same(self, partition: Partition, servers: ServerLogs) -> None:
        """
        Refuse a folder that is not the one of the server.
        """
        cluster_id, told = self._cluster_id(), servers.leaders.cluster_id
        if cluster_id != told:
            raise Unreadable(f"{self._path} is of cluster {cluster_id}, and the server that is named of cluster {told}")
        try:
            written = self._files.read(self._path / str(partition) / METADATA)
        except FileNotFoundError:
            raise Unreadable(f"{partition} is not in {self._path}: does its server keep it elsewhere?") from None
        if topic_id_of(written.rstrip() + b"\n") != servers.leaders.topic_ids.get(
            partition.topic
        ):  # Kafka's has no end
            raise TopicGone(f"{partition} in {self._path} is of an earlier topic of that name")

    def _cluster_id(self) -> str:
        try:
            match = _CLUSTER_ID.search(self._files.read(self._path / META))
        except OSError:
            match = None
        if match is None:
            raise Unreadable(f"{self._path} is not the data folder of a kgateway or of Kafka: it has no {META}")
        return match[1].decode()
