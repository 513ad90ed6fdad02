"""
Tables of latest values, made as the command does it, in the Spark of the tests.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.compact.snapshots import CURRENT, Snapshots
from kgateway.spark.compact.sources import LogSource
from kgateway.spark.compact.tables import Made, Table, made_of_archive
from tests.spark.archive.archives import Archives
from tests.spark.gateway import Row, Topics

TASK_RECORDS = 100


@dataclass
class Tables:
    """
    Those in one folder, of what these archives and this gateway have.
    """

    topics: Topics
    archives: Archives
    path: Path
    options: dict[str, Any] = field(default_factory=dict)

    def of_archive(self, topic: str, folder: str = "latest") -> Made:
        """
        Archive all that there is, and make the table.
        """
        self.archives.archive(topic)
        return made_of_archive(self.table(topic, folder), self.topics.spark, self.archives.folder(topic))

    def of_log(self, topic: str, folder: str = "latest") -> Made:
        """
        Make the table from the topic itself.
        """
        source = LogSource(self.topics.spark, self.archives.place, topic, TASK_RECORDS)
        return self.table(topic, folder).make(self.topics.spark, source)

    def table(self, topic: str, folder: str = "latest") -> Table:
        """
        What is wanted.
        """
        return Table(Snapshots(self.path / folder / topic), **self.options)

    def rows(self, topic: str, folder: str = "latest") -> list[Row]:
        """
        What somebody finds who knows nothing of snapshots.
        """
        found: list[Row] = ds.dataset(self.path / folder / topic / CURRENT, format="parquet").to_table().to_pylist()
        assert all(tuple(row) == COLUMNS for row in found)
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))
