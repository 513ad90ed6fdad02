"""
The topics of a SeaweedMQ cluster as its filer has them: what is in files, at the offsets at which a gateway shows it.

What brokers still have in memory is not there yet: it follows when they flush, every few seconds.
"""

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweedmq.beside import Beside
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import Folder, folders_of
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.layout import NAMESPACE, namespace_folder
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.broker.seaweedmq.topics import Topics as StoredTopics
from kgateway.broker.times import find_time
from kgateway.client.offsets import Extent, Found, Partition
from kgateway.records.batch import Batch
from kgateway.spark.failures import TopicGone, Unreadable
from kgateway.spark.filer.blocking import blocking, result_of
from kgateway.spark.filer.parquet_files import ParquetFiles
from kgateway.spark.filer.partition_files import PartitionFiles
from kgateway.spark.logs import Window
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_ahead import one_ahead
from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_paths import UrlPath
from kgateway.wire.malformed import Malformed

_BESIDE = ".kgateway"
_OF_A_FORM = "message"  # what forms say where they are at, by SeaweedMQ's offset
_NO_CLOCK: Any = None  # nothing waits here
_BEGINNING = 0
_NOTHING = Found(None, None)


class FilerLogs:
    """
    Those of one filer.
    """

    def __init__(
        self, root: UrlPath, access: Access, namespace: str = NAMESPACE, *, from_parquet: bool = False
    ) -> None:
        self._root = root
        self._from_parquet = from_parquet
        self._namespace = namespace
        self._files = RemoteFiles(root.origin, access)
        self._seaweed = blocking(self._files, root)
        self._topics = StoredTopics(self._seaweed, namespace)

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[Partition]]:
        found = {name: self._stored(name) for name in (self._names() if topics is None else topics)}
        return {
            name: [Partition(name, index) for index in range(stored.kept.partition_count)]
            for name, stored in found.items()
            if stored and not (topics is None and stored.kept.internal)
        }

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        stored = {name: self._stored(name) for name in {one.topic for one in wanted}}
        return {one: self._extent(one, there) for one in wanted if (there := stored[one.topic])}

    def at_time(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        extents = self.extents(wanted)
        return {one: self._first_at(one, extent, timestamp_ms) for one, extent in extents.items()}

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        return one_ahead(self._windows(wanted))

    def __str__(self) -> str:
        return f"the filer {self._root.origin}"

    def close(self) -> None:
        self._files.close()

    def _names(self) -> list[str]:
        """
        Of all topics; a server that has no folder for them may be none of SeaweedFS's.
        """
        folder = namespace_folder(self._namespace)
        with self._telling(folder):
            try:
                self._files.names(self._root / folder.strip("/"))
            except FileNotFoundError:
                reason = f"there is no {folder} in {self}: no topic was made yet, or it is no filer of SeaweedFS"
                raise Unreadable(reason) from None
            return result_of(self._topics.names())

    def _stored(self, name: str) -> Stored | None:
        with self._telling(f"topic {name}"):
            seen = result_of(self._topics.seen(name))
            return seen.stored if seen else None

    def _extent(self, partition: Partition, stored: Stored) -> Extent:
        """
        As the gateway finds it that opens the partition.
        """
        if self._from_parquet:
            with self._telling(str(partition)):
                return self._parquet_files(partition, stored).extent()
        form = stored.kept.form
        history = History(self._seaweed, self._folders(partition, stored), form, DecodedFiles(0), _NO_CLOCK)
        beside = Beside(self._seaweed, f"{self._topics.folder(partition.topic)}/{_BESIDE}/{partition.index}")
        with self._telling(str(partition)):
            result_of(history.refresh())
            first, end = result_of(history.start()), result_of(history.end(_BEGINNING)).offset
            deleted = result_of(beside.log_start())
        if form.numbered:
            end = max(end, deleted)  # what was deleted before it was in a file
        return Extent(end if first is None else min(max(first, deleted), end), end)

    def _first_at(self, partition: Partition, extent: Extent, timestamp_ms: int) -> Found:
        for batch in self._published_from(partition, extent, timestamp_ms):
            if batch.header.max_timestamp >= timestamp_ms:
                found = find_time([batch], timestamp_ms, extent.start)
                if found:
                    return Found(found.offset, found.timestamp)
        return _NOTHING

    def _published_from(self, partition: Partition, extent: Extent, timestamp_ms: int) -> Iterator[Batch]:
        if extent.start < extent.end:
            files = self._partition_files(partition)
            with self._telling(str(partition)):
                for window in files.windows_published(timestamp_ms, *extent):
                    yield from window.batches

    def _windows(self, wanted: OffsetRange) -> Generator[Window, None, None]:
        files = self._partition_files(wanted.partition)
        with self._telling(str(wanted.partition)):
            yield from files.windows(wanted.start, wanted.end)

    def _partition_files(self, partition: Partition) -> "PartitionFiles | ParquetFiles":
        stored = self._stored(partition.topic)
        if stored is None:
            raise TopicGone(f"{partition} is not in {self} any more")
        if self._from_parquet:
            return self._parquet_files(partition, stored)
        return PartitionFiles(self._seaweed, self._folders(partition, stored), stored.kept.form)

    def _parquet_files(self, partition: Partition, stored: Stored) -> ParquetFiles:
        form = stored.kept.form
        if form.record_type() is None:
            raise Unreadable(f"topic {partition.topic} is of the form {form.name}, which SeaweedFS has no Parquet of")
        return ParquetFiles(self._files, self._root, self._folders(partition, stored))

    def _folders(self, partition: Partition, stored: Stored) -> list[Folder]:
        return folders_of(stored.kept, partition.topic, partition.index, self._namespace)

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """
        What cannot be read is told with what it is of, and what is damaged with its file.
        """
        try:
            yield
        except Malformed as error:
            where = "message" if error.place.message == _OF_A_FORM else "byte"
            place = f"{self._files.read_last} is damaged at {where} {error.position:,}"
            raise Unreadable(f"{place}: {error.reason}") from error
        except (FilerRefused, OSError) as error:
            raise Unreadable(f"{what} in {self} cannot be read: {error}") from error
