"""
The records of a file beside those that the log has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.parquet import SCHEMA


@dataclass
class Difference:
    """
    Offsets by what is the matter with them.
    """

    lost: list[int] = field(default_factory=list)  # the log has a record there
    changed: list[int] = field(default_factory=list)
    alone: list[int] = field(default_factory=list)  # the log has none there
    same: int = 0  # how many are in both, and the same
    missing: int = 0  # how many the log has alone, where that is expected


def compare(
    archived: Iterable[pa.RecordBatch], logged: Iterable[pa.RecordBatch], *, is_compacted: bool = False
) -> Difference:
    """
    Both are in order of offsets. What compaction may have removed is counted, however much it is.
    """
    found, rest = Difference(), _Rest(iter(archived))
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


class _Rest:
    """
    Records of the file that were not compared yet.
    """

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._here = pa.RecordBatch.from_pylist([], SCHEMA)

    def up_to(self, last: int) -> pa.RecordBatch:
        """
        Those up to this offset.
        """
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
        """
        The offsets of all that are left.
        """
        left: list[int] = _offsets(self._here).tolist()
        for rows in self._rows:
            left += _offsets(rows).tolist()
        return left


def _offsets(rows: pa.RecordBatch) -> np.ndarray:
    return rows.column("offset").to_numpy()


def _changed(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> list[int]:
    """
    Where they differ. They seldom do, and only then they are looked at one by one.
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
