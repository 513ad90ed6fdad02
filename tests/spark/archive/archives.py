"""
Archives of topics, made and checked in the tests' Spark by the classes behind the commands.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.job import ArchiveJob, identity_of
from kgateway.spark.archive.manifest import Manifest
from kgateway.spark.archive.parquet import COLUMNS, SCHEMA, Target
from kgateway.spark.archive.verification import Outcome, Verification
from kgateway.spark.options import READ, Options
from kgateway.spark.query import LogLocation, location_of

FILE_BYTES = 1 << 20


@dataclass
class Archives:
    """
    The archives in one folder.
    """

    spark: Any
    path: Any  # a Path, or a UrlPath
    options: dict[str, str]
    file_bytes: int = FILE_BYTES
    task_records: int = 1_000

    @property
    def place(self) -> LogLocation:
        return location_of(Options(self.options, READ))

    def folder(self, topic: str) -> Folder:
        return Folder(self.path / topic)

    def job(self, topic: str) -> ArchiveJob:
        """
        A job that has started, and written nothing yet.
        """
        identity = identity_of(self.place, topic)
        target = Target(self.folder(topic), identity, self.file_bytes, "zstd")
        return ArchiveJob(self.spark, self.place, target, self.task_records)

    def archive(self, topic: str) -> Manifest:
        job = self.job(topic)
        for _ in job.rounds(job.extents()):
            pass
        return job.manifest

    def verify(self, topic: str, *, log: bool = True) -> Outcome:
        *_, outcome = Verification(self.spark, self.folder(topic), topic, self.place if log else None).steps()
        assert isinstance(outcome, Outcome)
        return outcome

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """
        The rows that a plain reader of Parquet finds in the folder.
        """
        found: list[dict[str, Any]] = self._table(topic).to_pylist()
        assert all(tuple(row) == COLUMNS for row in found)
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))

    def _table(self, topic: str) -> pa.Table:
        if isinstance(self.path, Path):
            return ds.dataset(self.path / topic, format="parquet").to_table()
        folder = self.folder(topic)
        tables = [pq.read_table(folder.store.open(folder.path / name)) for name in self.names(topic)]
        return pa.concat_tables([SCHEMA.empty_table(), *tables])

    def offsets(self, topic: str, partition: int = 0) -> list[int]:
        return [row["offset"] for row in self.rows(topic) if row["partition"] == partition]

    def names(self, topic: str) -> list[str]:
        folder = self.folder(topic)
        return sorted(name for name in folder.store.names(folder.path) if name.endswith(".parquet"))


def fault_texts(outcome: Outcome) -> list[str]:
    return [f"{finding.place}: {finding.reason}" for finding in outcome.findings if finding.is_fault]
