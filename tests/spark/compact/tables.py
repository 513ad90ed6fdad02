"""
Tables of latest values, made with the classes of the command, in the tests' Spark.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.compact.latest_table import LatestTable, TableResult, table_of_archive
from kgateway.spark.compact.table_snapshots import CURRENT, Snapshots
from kgateway.spark.compact.table_sources import LogSource
from tests.spark.archive.archives import Archives
from tests.spark.gateway import Row, Topics

TASK_RECORDS = 100


@dataclass
class Tables:
    """
    The tables in one folder.
    """

    topics: Topics
    archives: Archives
    path: Path
    options: dict[str, Any] = field(default_factory=dict)

    def of_archive(self, topic: str, folder: str = "latest") -> TableResult:
        """
        Archive everything, and make the table.
        """
        self.archives.archive(topic)
        return table_of_archive(self.table(topic, folder), self.topics.spark, self.archives.folder(topic))

    def of_log(self, topic: str, folder: str = "latest") -> TableResult:
        """
        Make the table from the topic itself.
        """
        source = LogSource(self.topics.spark, self.archives.place, topic, TASK_RECORDS)
        return self.table(topic, folder).make(self.topics.spark, source)

    def table(self, topic: str, folder: str = "latest") -> LatestTable:
        return LatestTable(Snapshots(self.path / folder / topic), **self.options)

    def rows(self, topic: str, folder: str = "latest") -> list[Row]:
        """
        The rows that a plain reader of Parquet finds.
        """
        found: list[Row] = ds.dataset(self.path / folder / topic / CURRENT, format="parquet").to_table().to_pylist()
        assert all(tuple(row) == COLUMNS for row in found)
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))
