"""
The topics of a SeaweedMQ cluster as its filer has them: the records in files, at the offsets at which a gateway shows
them.

Records that brokers still have in memory are missing until they are flushed, every few seconds.

Retention removes the first files, also while they are read. A file that has changed since it was listed is looked up
again.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kgateway.broker.partition.timestamp_search import find_time
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweedmq.files.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles as FilesOfGateway
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder, folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE, namespace_folder, side_folder
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.broker.seaweedmq.topics.catalog import TopicCatalog as StoredTopics
from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.batch import Batch, batches
from kgateway.spark.errors import TopicGone, Unreadable
from kgateway.spark.http.client import Access, UrlPath
from kgateway.spark.http.files import RemoteFiles, one_ahead
from kgateway.spark.logs.interface import AbortedTransactions, OffsetGone, Window
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.seaweed.filer import readable_cluster, result_of
from kgateway.spark.seaweed.parquet import ParquetFiles
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import Malformed

_LOOKS = 5  # at a file that changes each time
_BEGINNING = 0
_OF_A_FORM = "message"  # formats give the offset of a message as the position
_NO_CLOCK: Any = None  # nothing waits here
_NOTHING = OffsetAndTimestamp(None, None)


class PartitionFiles:
    """
    The log files of a partition, listed when reading begins.
    """

    def __init__(
        self, seaweed: SeaweedCluster, folders: Sequence[PartitionFolder], message_format: MessageFormat
    ) -> None:
        self._files = LogFiles(seaweed, message_format)
        self._folders = folders
        self._message_format = message_format
        self._vanished: set[str] = set()

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """
        The batches with offsets from the start up to the end, some at a time. OffsetGone where offsets have vanished
        with their files.
        """
        self._refresh()
        position, looks = start, 0
        while position < end:
            before = position
            try:
                for window in self._read(position, end):
                    position = window.next_offset
                    yield window
                return
            except FileNotFound as gone:
                looks = looks + 1 if position == before else 0
                if looks == _LOOKS:
                    raise Unreadable(f"{gone}: it changes with each attempt") from gone
                self._refresh()

    def windows_published(self, timestamp_ms: int, start: int, end: int) -> Iterator[Window]:
        """
        As `windows`, but skips files that cannot have this timestamp or a later one. That needs messages whose only
        time is that of their publication.
        """
        self._refresh()
        file = None if self._message_format.numbered else self._files.published_before(timestamp_ms)
        first = result_of(self._files.first_offset(file)) if file else None
        return self.windows(start if first is None else max(first, start), end)

    def _refresh(self) -> None:
        gone = result_of(self._files.refresh(self._folders))
        self._vanished |= set(gone) - {file.path for file in self._files.listed}

    def _read(self, position: int, end: int) -> Iterator[Window]:
        before = ""
        for file in result_of(self._files.from_offset(position)):
            first = result_of(self._files.first_offset(file))
            if first is None:
                continue  # the file has only messages of other programs
            self._check_whole(before, file, first, position, end)
            for window in self._in(file, position, end):
                position = window.next_offset
                yield window
            if position >= end:
                return
            before = file.path

    def _check_whole(self, before: str, file: LogFile, first: int, position: int, end: int) -> None:
        """
        Raise OffsetGone where a file between these two, or before the first, has vanished with its offsets.
        """
        if first > position and (not before or any(before < path < file.path for path in self._vanished)):
            raise OffsetGone(position, Extent(first, max(first, end)))

    def _in(self, file: LogFile, position: int, end: int) -> Iterator[Window]:
        """
        The batches of one file. The first may begin before the position; single records that are not wanted are
        skipped.
        """
        at, shift, number, report = 0, file.folder.shift, file.first, self._files.report(file.folder)
        behind = _BEGINNING if self._message_format.batched else position
        while at < file.size and position < end:
            found = result_of(self._files.range_at(file, at))
            entries = list(self._files.messages(found, number))
            wanted = _from(position, batches(b"".join(self._message_format.decode(entries, shift, behind, report))))
            at, shift = found.stop, self._message_format.shift_after(entries, shift)
            number = entries[-1].offset + 1
            if wanted:
                position = behind = wanted[-1].header.last_offset + 1
                yield Window(wanted, AbortedTransactions(), position)


def _from(position: int, found: Iterator[Batch]) -> list[Batch]:
    return [batch for batch in found if batch.header.last_offset >= position]


class FilerLogs:
    def __init__(
        self, root: UrlPath, access: Access, namespace: str = NAMESPACE, *, from_parquet: bool = False
    ) -> None:
        self._root = root
        self._from_parquet = from_parquet
        self._namespace = namespace
        self._files = RemoteFiles(root.origin, access)
        self._seaweed = readable_cluster(self._files, root)
        self._topics = StoredTopics(self._seaweed, namespace)

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[TopicPartition]]:
        found = {name: self._stored(name) for name in (self._names() if topics is None else topics)}
        return {
            name: [TopicPartition(name, index) for index in range(stored.file.partition_count)]
            for name, stored in found.items()
            if stored and not (topics is None and stored.file.internal)
        }

    def extents(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        stored = {name: self._stored(name) for name in {partition.topic for partition in wanted}}
        return {partition: self._extent(partition, there) for partition in wanted if (there := stored[partition.topic])}

    def at_time(
        self, wanted: Collection[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        extents = self.extents(wanted)
        return {partition: self._first_at(partition, extent, timestamp_ms) for partition, extent in extents.items()}

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        return one_ahead(self._windows(wanted))

    def __str__(self) -> str:
        return f"the filer {self._root.origin}"

    def close(self) -> None:
        self._files.close()

    def _names(self) -> list[str]:
        """
        The names of all topics. A server without a folder for them may be no filer at all.
        """
        folder = namespace_folder(self._namespace)
        with self._raising_unreadable(folder):
            try:
                self._files.names(self._root / folder.strip("/"))
            except FileNotFoundError:
                reason = f"there is no {folder} in {self}: no topic was created yet, or it is not a filer of SeaweedFS"
                raise Unreadable(reason) from None
            return result_of(self._topics.names())

    def _stored(self, name: str) -> StoredTopic | None:
        with self._raising_unreadable(f"topic {name}"):
            seen = result_of(self._topics.read(name))
            return seen.stored if seen else None

    def _extent(self, partition: TopicPartition, stored: StoredTopic) -> Extent:
        """
        The extent that a gateway finds when it opens the partition.
        """
        if self._from_parquet:
            with self._raising_unreadable(str(partition)):
                return self._parquet_files(partition, stored).extent()
        message_format = stored.file.format
        history = FilesOfGateway(
            self._seaweed, self._folders(partition, stored), message_format, RangeCache(0), _NO_CLOCK
        )
        beside = FilerSideFiles(self._seaweed, side_folder(*partition, self._topics.namespace))
        with self._raising_unreadable(str(partition)):
            result_of(history.refresh())
            first, end = result_of(history.start()), result_of(history.end(_BEGINNING)).offset
            deleted = result_of(beside.log_start())
        if message_format.numbered:
            end = max(end, deleted)  # records may be deleted before they are in a file
        return Extent(end if first is None else min(max(first, deleted), end), end)

    def _first_at(self, partition: TopicPartition, extent: Extent, timestamp_ms: int) -> OffsetAndTimestamp:
        for batch in self._published_from(partition, extent, timestamp_ms):
            if batch.header.max_timestamp >= timestamp_ms:
                found = find_time([batch], timestamp_ms, extent.start)
                if found:
                    return OffsetAndTimestamp(found.offset, found.timestamp)
        return _NOTHING

    def _published_from(self, partition: TopicPartition, extent: Extent, timestamp_ms: int) -> Iterator[Batch]:
        if extent.start < extent.end:
            files = self._partition_files(partition)
            with self._raising_unreadable(str(partition)):
                for window in files.windows_published(timestamp_ms, *extent):
                    yield from window.batches

    def _windows(self, wanted: OffsetRange) -> Generator[Window, None, None]:
        files = self._partition_files(wanted.partition)
        with self._raising_unreadable(str(wanted.partition)):
            yield from files.windows(wanted.start, wanted.end)

    def _partition_files(self, partition: TopicPartition) -> "PartitionFiles | ParquetFiles":
        stored = self._stored(partition.topic)
        if stored is None:
            raise TopicGone(f"{partition} is not in {self} any more")
        if self._from_parquet:
            return self._parquet_files(partition, stored)
        return PartitionFiles(self._seaweed, self._folders(partition, stored), stored.file.format)

    def _parquet_files(self, partition: TopicPartition, stored: StoredTopic) -> ParquetFiles:
        message_format = stored.file.format
        if message_format.record_type() is None:
            raise Unreadable(
                f"topic {partition.topic} is of the format {message_format.name}, for which SeaweedFS has no Parquet "
                "files"
            )
        return ParquetFiles(self._files, self._root, self._folders(partition, stored))

    def _folders(self, partition: TopicPartition, stored: StoredTopic) -> list[PartitionFolder]:
        return folders_of(stored.file, partition.topic, partition.index, self._namespace)

    @contextmanager
    def _raising_unreadable(self, what: str) -> Iterator[None]:
        """
        Turn errors into Unreadable, and name a damaged file.
        """
        try:
            yield
        except Malformed as error:
            where = "message" if error.field.message == _OF_A_FORM else "byte"
            place = f"{self._files.read_last} is damaged at {where} {error.position:,}"
            raise Unreadable(f"{place}: {error.reason}") from error
        except (FilerRefused, OSError) as error:
            raise Unreadable(f"{what} in {self} cannot be read: {error}") from error
