"""
Small files of an archive into larger ones: a job that runs on writes one for each partition in each round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Manifest
from kgateway.spark.archive.parquet import Output, Target, rows_of
from kgateway.spark.archive.tiles import File
from kgateway.spark.failures import Unreadable

MANY = 16  # neighbours that are small, which are worth it even if they are not a large one together
_SUMMED = ("markers", "aborted", "removed")


@dataclass(frozen=True, slots=True)
class Merge:
    """
    Which files, neighbours in one partition.
    """

    target: Target
    files: tuple[File, ...]

    def run(self) -> File:
        """
        The file that takes their place.
        """
        output = Output(self.target, self.files[0].partition, self.files[0].first)
        try:
            for file in self.files:
                for rows in rows_as_written(self.target.folder, file):
                    output.add(rows)
            summed = {name: sum(getattr(file, name) for file in self.files) for name in _SUMMED}
            return output.end(self.files[-1].last, **summed)
        finally:
            output.give_up()


def rows_as_written(folder: Folder, file: File) -> Iterator[pa.RecordBatch]:
    """
    The records of a file; Unreadable at the end where they are not those that were written to it.
    """
    path, checksum = folder.place(file.name), Checksum()
    try:
        for rows in rows_of(folder.store, path):
            checksum.add(rows)
            yield rows
    except Unreadable as error:
        raise Unreadable(f"{path}: {error}") from error
    if checksum.text != file.checksum:
        raise Unreadable(f"{path} does not have the records that were written to it: `kgateway spark verify`")


def mergeable(manifest: Manifest, file_bytes: int) -> list[list[File]]:
    """
    Files to be put together, in each partition those of one group.
    """
    groups = []
    for partition in manifest.ends:
        for run in _small_runs(manifest, partition, file_bytes):
            groups += _groups(run, file_bytes)
    return groups


def _small_runs(manifest: Manifest, partition: int, file_bytes: int) -> list[list[File]]:
    """
    Files without anything else between them, none of which is half as large as one should be.
    """
    runs: list[list[File]] = [[]]
    for tile in manifest.of(partition):
        if isinstance(tile, File) and tile.raw_bytes < file_bytes // 2:
            runs[-1].append(tile)
        else:
            runs.append([])
    return runs


def _groups(run: Sequence[File], file_bytes: int) -> list[list[File]]:
    groups: list[list[File]] = [[]]
    for file in run:
        groups[-1].append(file)
        if sum(one.raw_bytes for one in groups[-1]) >= file_bytes:
            groups.append([])
    return [*groups[:-1], *([groups[-1]] if len(groups[-1]) >= MANY else [])]
