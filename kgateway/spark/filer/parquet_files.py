"""
What SeaweedFS itself has put into Parquet, beside the log files of a partition: an operator's `mq.topic.compact` does.

It does so with topics of the form `record`, and does not tell null from empty: a key that is empty there is taken for
null, a value for empty. So it is read only where somebody says so, in place of log files.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.headers_text import headers_of
from kgateway.broker.seaweedmq.forms.runs import Runs
from kgateway.client.offsets import Extent
from kgateway.records.batch import batches
from kgateway.spark.aborted import Aborted
from kgateway.spark.failures import Unreadable
from kgateway.spark.logs import Gone, Window
from kgateway.spark.remote_files import RemoteFile, RemoteFiles
from kgateway.spark.remote_paths import UrlPath

SUFFIX = ".parquet"

_OFFSET, _TIMESTAMP, _TIMESTAMP_TYPE = "_kafka_offset", "_kafka_timestamp", "_kafka_timestamp_type"
_COLUMNS = [_OFFSET, _TIMESTAMP, _TIMESTAMP_TYPE, "key", "value", "_kafka_headers"]
_ROWS = 4_096  # at a time
_READ_BYTES = 1 << 20


class ParquetFiles:
    """
    Those of one partition, oldest first.
    """

    def __init__(self, files: RemoteFiles, root: UrlPath, folders: Sequence[Folder]) -> None:
        self._files = files
        self._folders = [root / folder.path.strip("/") for folder in folders]

    def extent(self) -> Extent:
        """
        The first offset in them, and the one behind the last.
        """
        found = [extent for path in self._listed() for extent in self._extents(path) if extent.end]
        return Extent(min(found)[0], max(end for _, end in found)) if found else Extent(0, 0)

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """
        The records with offsets from the start on, up to the end. An offset that is not there is no loss.
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
                raise Gone(position, self.extent())
            yield Window([], Aborted(), end)

    def windows_published(self, timestamp_ms: int, start: int, end: int) -> Iterator[Window]:
        """
        The same, whatever the time: names of files do not tell.
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
        size = self._files.names(path.parent)[path.name]
        try:
            raw = _Seekable(self._files.open(path), size)
            with pq.ParquetFile(io.BufferedReader(raw, _READ_BYTES)) as file:
                missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
                if missing:
                    raise Unreadable(f"{path} has no column {missing[0]}: its topic is not of the form record")
                yield file
        except (pa.ArrowException, ValueError) as error:
            raise Unreadable(f"{path} is damaged: {error}") from error


class _Seekable(io.RawIOBase):
    """
    A file as Arrow wants it.
    """

    def __init__(self, file: RemoteFile, size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # all that can be written to
        data = self._file.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _extents(file: pq.ParquetFile) -> list[Extent]:
    """
    The offsets of each group of rows. Messages that others wrote into the topic have none.
    """
    found = []
    for group in range(file.num_row_groups):
        ends = pc.min_max(file.read_row_group(group, [_OFFSET]).column(_OFFSET)).as_py()
        found.append(Extent(0, 0) if ends["min"] is None else Extent(ends["min"], ends["max"] + 1))
    return found


def _window(rows: pa.RecordBatch, position: int, end: int) -> Window | None:
    """
    Those of the rows that are wanted, as batches.
    """
    runs = Runs()
    columns = (rows.column(name).to_pylist() for name in _COLUMNS)
    for offset, timestamp, kind, key, value, text in zip(*columns, strict=True):
        if offset is not None and position <= offset < end:
            headers = headers_of(text.decode()) if text else ()
            runs.add(offset, timestamp, key or None, value, headers, by_append=bool(kind))
            position = offset + 1
    found = list(batches(b"".join(runs.finish())))
    return Window(found, Aborted(), position) if found else None
