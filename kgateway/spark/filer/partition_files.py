"""
The records of one partition, out of its log files: as batches with Kafka's offsets, however their messages are formed.

Files go at the front by retention, and while they are read. One that is not as it was listed makes for another look.
"""

from collections.abc import Iterator, Sequence

from kgateway.broker.seaweed.filer_files import NotThere
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.log_files import LogFile, LogFiles
from kgateway.client.offsets import Extent
from kgateway.records.batch import Batch, batches
from kgateway.spark.aborted import Aborted
from kgateway.spark.failures import Unreadable
from kgateway.spark.filer.blocking import result_of
from kgateway.spark.logs import Gone, Window

_LOOKS = 5  # at a file that is another one each time
_BEGINNING = 0


class PartitionFiles:
    """
    Its files, as they are listed when reading begins.
    """

    def __init__(self, seaweed: Seaweed, folders: Sequence[Folder], form: Form) -> None:
        self._files = LogFiles(seaweed, form)
        self._folders = folders
        self._form = form
        self._vanished: set[str] = set()

    def windows(self, start: int, end: int) -> Iterator[Window]:
        """
        The batches with offsets from the start on, up to the end, some at a time. Gone where offsets have gone with
        their files.
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
            except NotThere as gone:
                looks = looks + 1 if position == before else 0
                if looks == _LOOKS:
                    raise Unreadable(f"{gone}: it is another one at each look") from gone
                self._refresh()

    def windows_published(self, timestamp_ms: int, start: int, end: int) -> Iterator[Window]:
        """
        The same, without files in which nothing can be of this time or later, where messages have no other time than
        that at which they were published.
        """
        self._refresh()
        file = None if self._form.numbered else self._files.published_before(timestamp_ms)
        first = result_of(self._files.first_offset(file)) if file else None
        return self.windows(start if first is None else max(first, start), end)

    def _refresh(self) -> None:
        gone = result_of(self._files.refresh(self._folders))
        self._vanished |= set(gone) - {file.path for file in self._files.listed}

    def _read(self, position: int, end: int) -> Iterator[Window]:
        before = ""
        for file in result_of(self._files.of(position)):
            first = result_of(self._files.first_offset(file))
            if first is None:
                continue  # others have written all that is in it
            self._check_whole(before, file, first, position, end)
            for window in self._in(file, position, end):
                position = window.next_offset
                yield window
            if position >= end:
                return
            before = file.path

    def _check_whole(self, before: str, file: LogFile, first: int, position: int, end: int) -> None:
        """
        Gone where a file has vanished between these two, or before the first, and offsets with it.
        """
        if first > position and (not before or any(before < path < file.path for path in self._vanished)):
            raise Gone(position, Extent(first, max(first, end)))

    def _in(self, file: LogFile, position: int, end: int) -> Iterator[Window]:
        """
        What one file has of it. A batch may begin before the position; of records it is known which are not wanted.
        """
        at, shift, report = 0, file.folder.shift, self._files.report(file.folder)
        behind = _BEGINNING if self._form.batched else position
        while at < file.size and position < end:
            found = result_of(self._files.range_at(file, at))
            entries = list(found.entries())
            wanted = _from(position, batches(b"".join(self._form.decode(entries, shift, behind, report))))
            at, shift = found.stop, self._form.shift_behind(entries, shift)
            if wanted:
                position = behind = wanted[-1].header.last_offset + 1
                yield Window(wanted, Aborted(), position)


def _from(position: int, found: Iterator[Batch]) -> list[Batch]:
    return [batch for batch in found if batch.header.last_offset >= position]
