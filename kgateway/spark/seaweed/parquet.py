"""
Parquet files that SeaweedFS has written beside the log files of a partition, when an operator ran `mq.topic.compact`.

It does so for topics of the format `record`, and does not keep null and empty apart: an empty key is read as null here,
and a null value as empty. So these files are read only on request, in place of log files.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgateway.broker.seaweedmq.formats.record import headers_of
from kgateway.broker.seaweedmq.formats.record_batches import BatchRuns
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.client.offsets import Extent
from kgateway.records.batch import batches
from kgateway.spark.errors import Unreadable
from kgateway.spark.http.client import UrlPath
from kgateway.spark.http.files import RemoteFiles, RemoteStream
from kgateway.spark.logs.interface import AbortedTransactions, OffsetGone, Window

SUFFIX = ".parquet"

_OFFSET, _TIMESTAMP, _TIMESTAMP_TYPE = "_kafka_offset", "_kafka_timestamp", "_kafka_timestamp_type"
_COLUMNS = [_OFFSET, _TIMESTAMP, _TIMESTAMP_TYPE, "key", "value", "_kafka_headers"]
_ROWS = 4_096  # at a time
_READ_BYTES = 1 << 20


class ParquetFiles:
    """
    The Parquet files of one partition, oldest first.
    """

    def __init__(self, files: RemoteFiles, root: UrlPath, folders: Sequence[PartitionFolder]) -> None:
        self._files = files
        self._folders = [root / folder.path.strip("/") for folder in folders]

    def extent(self) -> Extent:
        found = [extent for path in self._listed() for extent in self._extents(path) if extent.end]
        return Extent(min(found)[0], max(end for _, end in found)) if found else Extent(0, 0)

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """
        The records with offsets from the start up to the end. A missing offset is no loss.
        """
        position = start
        for path in self._listed():
            with self._opened(path) as file:
                groups = [n for n, (_, behind) in enumerate(_extents(file)) if behind > position]
                for rows in file.iter_batches(_ROWS, groups, _COLUMNS) if groups else ():
                    window = _window(rows, position, end)
                    if window:
                        position = window.next_offset
                        yield window
        if position < end:
            if position >= self.extent().end:
                raise OffsetGone(position, self.extent())
            yield Window([], AbortedTransactions(), end)

    def windows_published(self, timestamp_ms: int, start: int, end: int) -> Iterator[Window]:
        """
        All files: their names do not tell the time.
        """
        return self.windows(start, end)

    def _listed(self) -> list[UrlPath]:
        found = list[UrlPath]()
        for folder in self._folders:
            try:
                found += [folder / name for name in sorted(self._files.names(folder)) if name.endswith(SUFFIX)]
            except FileNotFoundError:
                continue
        return found

    def _extents(self, path: UrlPath) -> list[Extent]:
        with self._opened(path) as file:
            return _extents(file)

    @contextmanager
    def _opened(self, path: UrlPath) -> Iterator[pq.ParquetFile]:
        try:
            raw = io.BufferedReader(RemoteStream(self._files, path), _READ_BYTES)
            with pq.ParquetFile(raw) as file:
                missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
                if missing:
                    raise Unreadable(f"{path} has no column {missing[0]}: its topic is not of the format record")
                yield file
        except (pa.ArrowException, ValueError) as error:
            raise Unreadable(f"{path} is damaged: {error}") from error


def _extents(file: pq.ParquetFile) -> list[Extent]:
    """
    The extent of each row group. Messages that other programs wrote into the topic have no offset.
    """
    found = []
    for group in range(file.num_row_groups):
        ends = pc.min_max(file.read_row_group(group, [_OFFSET]).column(_OFFSET)).as_py()
        found.append(Extent(0, 0) if ends["min"] is None else Extent(ends["min"], ends["max"] + 1))
    return found


def _window(rows: pa.RecordBatch, position: int, end: int) -> Window | None:
    runs = BatchRuns()
    columns = (rows.column(name).to_pylist() for name in _COLUMNS)
    for offset, timestamp, kind, key, value, text in zip(*columns, strict=True):
        if offset is not None and position <= offset < end:
            headers = headers_of(text.decode()) if text else ()
            runs.add(offset, timestamp, key or None, value, headers, by_append=bool(kind))
            position = offset + 1
    found = list(batches(b"".join(runs.finish())))
    return Window(found, AbortedTransactions(), position) if found else None
