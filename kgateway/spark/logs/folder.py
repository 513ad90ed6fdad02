"""
Logs in a data folder of kgateway or of Kafka, on this machine or behind HTTP, read without their server.

If a server is named, it says how far they may be read: up to the high watermark, or the last stable offset. Without a
server that depends on how the folder was left:

 - after a clean stop: up to the end of the files
 - while a gateway runs, or after a crash: up to the checkpoint `kgateway.settled`, which is written every few seconds,
   if the machine has not been restarted since; otherwise up to what is synced (`recovery-point-offset-checkpoint`)
 - never beyond the high watermark that Kafka has checkpointed (`replication-offset-checkpoint`)
"""

import re
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import cast

from kgateway.broker.log.data_folder.checkpoints import LOG_STARTS, SETTLED, SYNCED, Offsets, read_offsets
from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.meta_properties import META
from kgateway.broker.log.data_folder.partition_folder import METADATA, topic_id_of
from kgateway.broker.log.data_folder.session import CLEAN, this_boot
from kgateway.broker.log.data_folder.start_file import START, read_start
from kgateway.broker.log.files.disk import Disk
from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.spark.errors import TopicGone, Unreadable
from kgateway.spark.http.client import Access, UrlPath
from kgateway.spark.http.files import RemoteFiles, one_ahead
from kgateway.spark.logs.broker_logs import ServerLogs
from kgateway.spark.logs.files import Files
from kgateway.spark.logs.interface import AbortedTransactions, Window
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.logs.segments import Segments, aborted_in, first_at
from kgateway.topic_partition import TopicPartition

_PARTITION = re.compile(r"([A-Za-z0-9._-]+)-([0-9]+)")
_WATERMARKS = "replication-offset-checkpoint"
_INTERNAL = "__"
_CLUSTER_ID = re.compile(rb"^cluster\.id=(\S+)\s*$", re.MULTILINE)


class FolderLogs:
    """
    The logs in one folder. A server, if one is named, limits how far they are read.
    """

    def __init__(
        self, path: PurePath, files: Files, servers: ServerLogs | None = None, *, committed_only: bool
    ) -> None:
        self._path = path
        self._files = files
        self._servers = servers
        self._committed_only = committed_only

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[TopicPartition]]:
        if self._servers:
            return self._servers.partitions(topics)
        wanted = None if topics is None else set(topics)
        found = dict[str, list[TopicPartition]]()
        for name in self._names():
            match = _PARTITION.fullmatch(name)
            if match and (match[1] in wanted if wanted is not None else not match[1].startswith(_INTERNAL)):
                found.setdefault(match[1], []).append(TopicPartition(match[1], int(match[2])))
        return {topic: sorted(partitions) for topic, partitions in found.items()}

    def extents(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        if self._servers:
            known = self._servers.extents(wanted)
            for partition, extent in known.items():
                if extent.end > extent.start:  # an empty one may have no folder yet
                    self._check_same(partition, self._servers)
            return known
        if self._committed_only:
            raise Unreadable(
                f"the files in {self._path} do not show which transactions have ended: name their server with "
                "kafka.bootstrap.servers, or leave out kafka.isolation.level=read_committed"
            )
        names = self._names()
        return {one: self._extent(one, names) for one in wanted if str(one) in names}

    def at_time(
        self, wanted: Collection[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        if self._servers:
            return self._servers.at_time(wanted, timestamp_ms)
        extents = self.extents(wanted)
        return {one: first_at(self._segments(one), extents[one], timestamp_ms) for one in extents}

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        segments = self._segments(wanted.partition)
        try:
            aborted = aborted_in(segments, wanted.start, wanted.end) if self._committed_only else AbortedTransactions()
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

    def _segments(self, partition: TopicPartition) -> Segments:
        return Segments(self._files, self._path / str(partition))

    def _extent(self, partition: TopicPartition, names: Collection[str]) -> Extent:
        segments = self._segments(partition)
        start = max((segments.bases() or [0])[0], self._offsets(LOG_STARTS).get(partition, 0))
        end = segments.end_offset() if CLEAN in names else self._synced_ends(names).get(partition, 0)
        if _WATERMARKS in names:
            end = min(end, self._offsets(_WATERMARKS).get(partition, 0))
        return Extent(start, max(start, end))

    def _synced_ends(self, names: Collection[str]) -> Offsets:
        """
        The offsets up to which the checkpoints vouch for each log.
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
        return cast(Path, self._path / name)  # only read here

    @property
    def _disk(self) -> Disk:
        return cast(Disk, self._files)  # only its `read` is called here

    def _check_same(self, partition: TopicPartition, servers: ServerLogs) -> None:
        """
        Refuse a folder that does not belong to the server.
        """
        cluster_id, known = self._cluster_id(), servers.cluster.cluster_id
        if cluster_id != known:
            raise Unreadable(f"{self._path} belongs to cluster {cluster_id}, but the given server to cluster {known}")
        try:
            written = self._files.read(self._path / str(partition) / METADATA)
        except FileNotFoundError:
            raise Unreadable(f"{partition} is not in {self._path}: does its server store it elsewhere?") from None
        if topic_id_of(written.rstrip() + b"\n") != servers.cluster.topic_ids.get(
            partition.topic
        ):  # Kafka's file has no newline at its end
            raise TopicGone(f"{partition} in {self._path} belongs to an earlier topic of that name")

    def _cluster_id(self) -> str:
        try:
            match = _CLUSTER_ID.search(self._files.read(self._path / META))
        except OSError:
            match = None
        if match is None:
            raise Unreadable(f"{self._path} is not the data folder of a kgateway or of Kafka: it has no {META}")
        return match[1].decode()


class RemoteFolderLogs(FolderLogs):
    def __init__(
        self, path: UrlPath, access: Access, servers: ServerLogs | None = None, *, committed_only: bool
    ) -> None:
        self._remote = RemoteFiles(path.origin, access)
        super().__init__(path, self._remote, servers, committed_only=committed_only)

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        return one_ahead(cast(Generator[Window, None, None], super().windows(wanted)))

    def close(self) -> None:
        super().close()
        self._remote.close()
