"""
Whether a file of an archive has what it has to have: its bytes are those that were written, its footer and its records
are what the manifest says, and its records are those of the log, as far as the log still has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.comparing import Difference, compare
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Identity
from kgateway.spark.archive.parquet import crc_of, file_of, footer, rows_of, size_of
from kgateway.spark.archive.task import records
from kgateway.spark.archive.tiles import File
from kgateway.spark.archive.watching import Seen, counted
from kgateway.spark.failures import Unreadable
from kgateway.spark.place import Place
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.remote_http import RemoteError

_SHOWN_MAX = 10  # spans of offsets in one message
_IN_FOOTER = ("partition", "first", "last", "count", "markers", "aborted", "removed", "checksum")
_ATTEMPTS = 5  # to read from where the log begins, which moves


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Something that is to be said, and whether it is a fault.
    """

    place: str
    reason: str
    is_fault: bool = True


@dataclass
class Checked:
    """
    What became of one file.
    """

    findings: list[Finding] = field(default_factory=list)
    compared: int = 0  # records that are those of the log
    alone: int = 0  # records that the log does not have any more


@dataclass(frozen=True, slots=True)
class Check:
    """
    Which file, and what the log has of its partition; nothing where the log is not looked at.
    """

    folder: Folder
    identity: Identity
    file: File
    place: Place | None
    extent: Extent | None

    def run(self) -> Checked:
        """
        Look at it.
        """
        checked = Checked()
        path = self._path(checked)
        is_good = self._check_records(path, checked) if path and self._check_bytes(path, checked) else None
        if path is None or is_good is None:
            return checked
        if self.place and self.extent:
            self._check_log(path, is_good, checked)
        else:
            checked.alone += self.file.count
        return checked

    def _tell(self, checked: Checked, reason: str) -> None:
        checked.findings.append(Finding(self.file.name, reason))

    def _tell_unread(self, checked: Checked, error: OSError) -> None:
        """
        A disk or a volume that does not give the file is a fault of the archive; a server that is away is none.
        """
        if isinstance(error, FileNotFoundError) or type(error) is RemoteError:
            raise error
        self._tell(checked, f"it cannot be read: {error}: {self._its_records} are in no file")

    @property
    def _its_records(self) -> str:
        return f"{self.file.range} ({self.file.count:,} records)"

    def _path(self, checked: Checked) -> PurePath | None:
        """
        Where the file is; nothing where it is not.
        """
        try:
            return self.folder.place(self.file.name)
        except FileNotFoundError:
            self._tell(checked, f"the file is gone: {self._its_records} are in no file")
        except OSError as error:
            self._tell_unread(checked, error)
        return None

    def _check_bytes(self, path: PurePath, checked: Checked) -> bool:
        """
        Whether they can be read.
        """
        try:
            self._compare_bytes(path, checked)
        except OSError as error:
            self._tell_unread(checked, error)
            return False
        return True

    def _compare_bytes(self, path: PurePath, checked: Checked) -> None:
        store = self.folder.store
        try:
            says, told = file_of(store, path), footer(store, path)
        except Unreadable as error:
            self._tell(checked, str(error))
            size, crc = size_of(store, path), crc_of(store, path)
        else:
            self._check_footer(says, told, checked)
            size, crc = says.bytes, says.crc
        if size != self.file.bytes:
            self._tell(checked, f"the file was changed: it has {size:,} bytes, and had {self.file.bytes:,}")
        elif crc != self.file.crc:
            self._tell(checked, f"the file was changed: the CRC32C of its bytes is {crc}, and was {self.file.crc}")

    def _check_footer(self, says: File, told: Mapping[str, str], checked: Checked) -> None:
        wrong = [name for name in _IN_FOOTER if getattr(says, name) != getattr(self.file, name)]
        wrong += [name for name in ("topic", "topic_id") if told.get(name) != getattr(self.identity, name)]
        if wrong:
            self._tell(checked, f"its footer is not that of the file that was written: {', '.join(wrong)}")

    def _check_records(self, path: PurePath, checked: Checked) -> bool | None:
        """
        Whether its records are those that were written; nothing where it cannot be read.
        """
        checksum, before, doubled, alien = Checksum(), self.file.first - 1, list[int](), list[int]()
        try:
            for rows in rows_of(self.folder.store, path):
                checksum.add(rows)
                offsets = np.concatenate([[before], rows.column("offset").to_numpy()])
                doubled += offsets[1:][np.diff(offsets) <= 0].tolist()
                alien += offsets[1:][(offsets[1:] < self.file.first) | (offsets[1:] > self.file.last)].tolist()
                before = int(offsets[-1])
        except Unreadable as error:
            self._tell(checked, f"{error}: {self._its_records} are in no file")
            return None
        doubled = [offset for offset in doubled if offset not in set(alien)]
        if doubled:
            self._tell(checked, f"{spans(doubled)} more than once, or not in order")
        if alien:
            self._tell(checked, f"{spans(alien)} in it, and do not belong there: it is of {self.file.range}")
        is_good = (checksum.text, checksum.count) == (self.file.checksum, self.file.count)
        if not is_good:
            self._tell(
                checked,
                f"its records are not those that were written: {checksum.count:,} with checksum {checksum.text}, and "
                f"there were {self.file.count:,} with {self.file.checksum}",
            )
        return is_good

    def _check_log(self, path: PurePath, is_good: bool, checked: Checked) -> None:
        partition = Partition(self.identity.topic, self.file.partition)
        assert self.place, "the log is looked at"
        assert self.extent, "the log is looked at"
        start, end = max(self.file.first, self.extent.start), min(self.file.last + 1, self.extent.end)
        for _ in range(_ATTEMPTS):
            if start >= end:
                checked.alone += self.file.count
                return
            seen, of = Seen(), OffsetRange(partition, start, end)
            is_all = not self.file.removed and len(of) == self.file.last + 1 - self.file.first
            if is_good and is_all and self._is_same(of, seen):
                checked.compared += self.file.count
                return
            seen = Seen()
            found = self._compared(path, of, seen)
            if seen.gone is None:
                self._judge(found, seen, of, is_good, checked)
                return
            start = seen.gone.extent.start
        raise Unreadable(f"{partition} loses records at its start faster than they can be read")

    def _is_same(self, of: OffsetRange, seen: Seen) -> bool:
        checksum = Checksum()
        assert self.place, "the log is looked at"
        with closing(self.place.open(planning=False)) as logs:
            for rows in records(logs, of, seen):
                checksum.add(rows)
        return seen.gone is None and checksum.text == self.file.checksum

    def _compared(self, path: PurePath, of: OffsetRange, seen: Seen) -> Difference:
        assert self.place, "the log is looked at"
        with closing(self.place.open(planning=False)) as logs:
            return compare(
                rows_of(self.folder.store, path), records(logs, of, seen), is_compacted=self.file.removed > 0
            )

    def _judge(self, found: Difference, seen: Seen, of: OffsetRange, is_good: bool, checked: Checked) -> None:
        checked.compared += found.same
        checked.alone += len(found.alone)
        if found.lost:
            self._tell(checked, f"{spans(found.lost)} in the log, and not in the archive")
        if found.missing > self.file.removed:
            reason = f"{found.missing:,} records are in the log alone, and compaction has removed {self.file.removed:,}"
            self._tell(checked, reason)
        if found.changed:
            self._tell(checked, f"{spans(found.changed)} not what the log has")
        none = [*seen.markers, *seen.aborted]
        within = [one for one in found.alone if of.start <= one < of.end]
        wrong = [one for one in within if not is_good or counted(none, one, one)]
        if wrong:
            self._tell(checked, f"{spans(wrong)} in the archive, and no records in the log")


def spans(offsets: Iterable[int]) -> str:
    """
    Offsets for people, with the verb behind them.
    """
    ordered = sorted(set(offsets))
    found: list[list[int]] = []
    for offset in ordered:
        if found and offset == found[-1][1] + 1:
            found[-1][1] = offset
        else:
            found.append([offset, offset])
    return f"{_noun(ordered)} {_listed(found)} {'is' if len(ordered) == 1 else 'are'}"


def _noun(offsets: Sequence[int]) -> str:
    return "offset" if len(offsets) == 1 else "offsets"


def _listed(found: Sequence[Sequence[int]]) -> str:
    shown = [f"{first}" if first == last else f"{first} to {last}" for first, last in found[:_SHOWN_MAX]]
    more = len(found) - _SHOWN_MAX
    return ", ".join(shown) + (f" and {more:,} more such" if more > 0 else "")
