"""
Checks a file of an archive: its bytes are those that were written, its footer and records agree with the manifest, and
its records are those of the log, as far as the log still has them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from kgateway.client.offsets import Extent
from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.gap_reasons import GapReasons, offsets_in
from kgateway.spark.archive.manifest import File, Identity
from kgateway.spark.archive.parquet import SCHEMA, crc_of, file_of, footer, rows_of, size_of
from kgateway.spark.archive.task import records
from kgateway.spark.errors import Unreadable
from kgateway.spark.http.client import RemoteError
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.query import LogLocation
from kgateway.topic_partition import TopicPartition

_SHOWN_MAX = 10  # spans of offsets in one message
_IN_FOOTER = ("partition", "first", "last", "count", "markers", "aborted", "removed", "checksum")
_ATTEMPTS = 5  # to read from the start of a log, which may move


@dataclass
class LogDifference:
    """
    Offsets at which an archive and its log differ, by kind.
    """

    lost: list[int] = field(default_factory=list)  # the log has a record there
    changed: list[int] = field(default_factory=list)
    alone: list[int] = field(default_factory=list)  # the log has none there
    same: int = 0  # how many are equal in both
    missing: int = 0  # how many only the log has, where compaction explains it


def compare(
    archived: Iterable[pa.RecordBatch], logged: Iterable[pa.RecordBatch], *, is_compacted: bool = False
) -> LogDifference:
    """
    Compare records, which both sides have in order of offsets. What compaction may have removed is only counted,
    however much it is.
    """
    found, rest = LogDifference(), _Uncompared(iter(archived))
    for rows in logged:
        ours, theirs = rest.up_to(rows.column("offset")[-1].as_py()), rows
        mine, its = _offsets(ours), _offsets(theirs)
        both, at_mine, at_its = np.intersect1d(mine, its, return_indices=True)
        if is_compacted:
            found.missing += len(its) - len(both)
        else:
            found.lost += np.setdiff1d(its, mine).tolist()
        found.alone += np.setdiff1d(mine, its).tolist()
        changed = _changed(ours.take(pa.array(at_mine)), theirs.take(pa.array(at_its)))
        found.changed += changed
        found.same += len(both) - len(changed)
    found.alone += rest.all()
    return found


class _Uncompared:
    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._here = pa.RecordBatch.from_pylist([], SCHEMA)

    def up_to(self, last: int) -> pa.RecordBatch:
        parts = [self._here]
        while not parts[-1].num_rows or _offsets(parts[-1])[-1] < last:
            following = next(self._rows, None)
            if following is None:
                break
            parts.append(following)
        here = pa.concat_batches(parts)
        inside = _offsets(here) <= last
        self._here = here.filter(pa.array(~inside))
        return here.filter(pa.array(inside))

    def all(self) -> list[int]:
        left: list[int] = _offsets(self._here).tolist()
        for rows in self._rows:
            left += _offsets(rows).tolist()
        return left


def _offsets(rows: pa.RecordBatch) -> np.ndarray:
    return rows.column("offset").to_numpy()


def _changed(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> list[int]:
    """
    The offsets of records that differ. That is rare, so records are compared one by one only where checksums differ.
    """
    if _checksum(ours) == _checksum(theirs):
        return []
    mine, its = ours.to_pylist(), theirs.to_pylist()
    changed: list[int] = [one["offset"] for one, other in zip(mine, its, strict=True) if one != other]
    return changed


def _checksum(rows: pa.RecordBatch) -> str:
    checksum = Checksum()
    checksum.add(rows)
    return checksum.text


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A note about an archive, which may be a fault.
    """

    place: str
    reason: str
    is_fault: bool = True


@dataclass
class FileResult:
    findings: list[Finding] = field(default_factory=list)
    compared: int = 0  # records that are those of the log
    alone: int = 0  # records that the log does not have any more


@dataclass(frozen=True, slots=True)
class FileCheck:
    """
    A file, and what the log has of its partition; nothing where the log is not compared.
    """

    folder: Folder
    identity: Identity
    file: File
    location: LogLocation | None
    extent: Extent | None

    def run(self) -> FileResult:
        checked = FileResult()
        path = self._path(checked)
        is_good = self._check_records(path, checked) if path and self._check_bytes(path, checked) else None
        if path is None or is_good is None:
            return checked
        if self.location and self.extent:
            self._check_log(path, is_good, checked)
        else:
            checked.alone += self.file.count
        return checked

    def _add_finding(self, checked: FileResult, reason: str) -> None:
        checked.findings.append(Finding(self.file.name, reason))

    def _add_unreadable(self, checked: FileResult, error: OSError) -> None:
        """
        A disk or volume that cannot deliver the file is a fault of the archive; a server that is away is not.
        """
        if isinstance(error, FileNotFoundError) or type(error) is RemoteError:
            raise error
        self._add_finding(checked, f"it cannot be read: {error}: {self._its_records} are in no file")

    @property
    def _its_records(self) -> str:
        return f"{self.file.range} ({self.file.count:,} records)"

    def _path(self, checked: FileResult) -> PurePath | None:
        """
        The file's path; None if it is missing.
        """
        try:
            return self.folder.find(self.file.name)
        except FileNotFoundError:
            self._add_finding(checked, f"the file is missing: {self._its_records} are in no file")
        except OSError as error:
            self._add_unreadable(checked, error)
        return None

    def _check_bytes(self, path: PurePath, checked: FileResult) -> bool:
        try:
            self._compare_bytes(path, checked)
        except OSError as error:
            self._add_unreadable(checked, error)
            return False
        return True

    def _compare_bytes(self, path: PurePath, checked: FileResult) -> None:
        store = self.folder.store
        try:
            says, written = file_of(store, path), footer(store, path)
        except Unreadable as error:
            self._add_finding(checked, str(error))
            size, crc = size_of(store, path), crc_of(store, path)
        else:
            self._check_footer(says, written, checked)
            size, crc = says.bytes, says.crc
        if size != self.file.bytes:
            self._add_finding(checked, f"the file was changed: it has {size:,} bytes, but had {self.file.bytes:,}")
        elif crc != self.file.crc:
            self._add_finding(
                checked, f"the file was changed: the CRC32C of its bytes is {crc}, but was {self.file.crc}"
            )

    def _check_footer(self, says: File, written: Mapping[str, str], checked: FileResult) -> None:
        wrong = [name for name in _IN_FOOTER if getattr(says, name) != getattr(self.file, name)]
        wrong += [name for name in ("topic", "topic_id") if written.get(name) != getattr(self.identity, name)]
        if wrong:
            self._add_finding(checked, f"its footer is not that of the file that was written: {', '.join(wrong)}")

    def _check_records(self, path: PurePath, checked: FileResult) -> bool | None:
        """
        Whether the records are those that were written; None if they cannot be read.
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
            self._add_finding(checked, f"{error}: {self._its_records} are in no file")
            return None
        doubled = [offset for offset in doubled if offset not in set(alien)]
        if doubled:
            self._add_finding(checked, f"{spans(doubled)} more than once, or not in order")
        if alien:
            self._add_finding(checked, f"{spans(alien)} in it, but the file is for {self.file.range}")
        is_good = (checksum.text, checksum.count) == (self.file.checksum, self.file.count)
        if not is_good:
            self._add_finding(
                checked,
                f"its records are not those that were written: {checksum.count:,} with checksum {checksum.text} "
                f"instead of {self.file.count:,} with {self.file.checksum}",
            )
        return is_good

    def _check_log(self, path: PurePath, is_good: bool, checked: FileResult) -> None:
        partition = TopicPartition(self.identity.topic, self.file.partition)
        assert self.location, "the log is looked at"
        assert self.extent, "the log is looked at"
        start, end = max(self.file.first, self.extent.start), min(self.file.last + 1, self.extent.end)
        for _ in range(_ATTEMPTS):
            if start >= end:
                checked.alone += self.file.count
                return
            seen, of = GapReasons(), OffsetRange(partition, start, end)
            is_all = not self.file.removed and len(of) == self.file.last + 1 - self.file.first
            if is_good and is_all and self._is_same(of, seen):
                checked.compared += self.file.count
                return
            seen = GapReasons()
            found = self._compared(path, of, seen)
            if seen.gone is None:
                self._judge(found, seen, of, is_good, checked)
                return
            start = seen.gone.extent.start
        raise Unreadable(f"{partition} loses records at its start faster than they can be read")

    def _is_same(self, of: OffsetRange, seen: GapReasons) -> bool:
        checksum = Checksum()
        assert self.location, "the log is looked at"
        with closing(self.location.open(planning=False)) as logs:
            for rows in records(logs, of, seen):
                checksum.add(rows)
        return seen.gone is None and checksum.text == self.file.checksum

    def _compared(self, path: PurePath, of: OffsetRange, seen: GapReasons) -> LogDifference:
        assert self.location, "the log is looked at"
        with closing(self.location.open(planning=False)) as logs:
            return compare(
                rows_of(self.folder.store, path), records(logs, of, seen), is_compacted=self.file.removed > 0
            )

    def _judge(
        self, found: LogDifference, seen: GapReasons, of: OffsetRange, is_good: bool, checked: FileResult
    ) -> None:
        checked.compared += found.same
        checked.alone += len(found.alone)
        if found.lost:
            self._add_finding(checked, f"{spans(found.lost)} in the log, but not in the archive")
        if found.missing > self.file.removed:
            reason = f"{found.missing:,} records are only in the log, but compaction has removed {self.file.removed:,}"
            self._add_finding(checked, reason)
        if found.changed:
            self._add_finding(checked, f"{spans(found.changed)} different in the log")
        none = [*seen.markers, *seen.aborted]
        within = [one for one in found.alone if of.start <= one < of.end]
        wrong = [one for one in within if not is_good or offsets_in(none, one, one)]
        if wrong:
            self._add_finding(checked, f"{spans(wrong)} in the archive, but not records in the log")


def spans(offsets: Iterable[int]) -> str:
    """
    Offsets in words, followed by a verb.
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
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
