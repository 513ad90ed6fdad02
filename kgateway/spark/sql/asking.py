"""
A statement over tables that are read as far as it needs them: it is planned over outlines of them first.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.sql.outlines import columns_read, explained
from kgateway.spark.sql.statement import answered
from kgateway.spark.sql.tables import Tables

Options = Callable[[str], Mapping[str, str]]  # what is said to the data source of a topic alone


def asked(spark: Any, statement: str, tables: Tables, options: Options) -> AbstractContextManager[DataFrame]:
    """
    What the statement gives.
    """
    needed = columns_needed(spark, statement, tables, options)

    def table(topic: str) -> DataFrame:
        return tables.table(topic, options(topic), needed.get(topic, COLUMNS))

    return answered(spark, statement, table, tables.topics)


def columns_needed(spark: Any, statement: str, tables: Tables, options: Options) -> Mapping[str, Collection[str]]:
    """
    By topic, where Spark says it.
    """
    folders: dict[str, Path] = {}
    with tempfile.TemporaryDirectory(prefix="kgateway-outlines-") as parent:

        def outline(topic: str) -> DataFrame:
            folders[topic] = Path(parent).resolve() / str(len(folders))
            return tables.outline(topic, options(topic), folders[topic])

        with answered(spark, statement, outline, tables.topics):
            plan = explained(spark, statement)
    read = {topic: columns_read(plan, folder) for topic, folder in folders.items()}
    return {topic: columns for topic, columns in read.items() if columns is not None}
