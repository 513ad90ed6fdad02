"""
An SQL statement and the topics that it names. Spark reports the table that it does not know; if it is a topic, the
table is created and the statement is analyzed again.

A statement is first planned over empty outlines of its tables, which tells the columns that it needs.
"""

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.sql.columns import columns_read, explained
from kgateway.spark.sql.tables import Tables

_UNKNOWN = {"TABLE_OR_VIEW_NOT_FOUND": "relationName", "REQUIRES_SINGLE_PART_NAMESPACE": "identifier"}
_PART = re.compile(r"`((?:[^`]|``)+)`")
_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "DESCRIBE", "DESC", "(")
Options = Callable[[str], Mapping[str, str]]  # the data source options of one topic


def check(statement: str) -> None:
    """
    Refuse statements that are not queries.
    """
    at = 0
    while comment := _COMMENT.match(statement, at):
        at = comment.end()
    if not statement[at:].upper().startswith(_QUERIES):
        raise WrongOption(f"this is not a query: a statement begins with {', '.join(_QUERIES[:-1])}")


@contextmanager
def analyzed(
    spark: Any, statement: str, table: Callable[[str], DataFrame], topics: Callable[[], Collection[str]]
) -> Iterator[DataFrame]:
    """
    The result of a statement, with topics as tables.
    """
    views: list[str] = []
    try:
        while True:
            try:
                result = spark.sql(statement)
                break
            except AnalysisException as error:
                parts = _missing(error)
                if parts is None or ".".join(parts) in views:
                    raise
            topic = topic_of(parts, topics(), spark.conf.get("spark.sql.caseSensitive") == "true")
            table(topic).createOrReplaceTempView(f"`{parts[0]}`")
            views.append(parts[0])
        yield result
    finally:
        for view in views:
            spark.catalog.dropTempView(view)


def topic_of(parts: list[str], there: Collection[str], is_case_sensitive: bool) -> str:
    """
    The topic that the name of a table means. It may not exist.
    """
    name = ".".join(parts)
    if len(parts) > 1:
        raise Unreadable(f"there is no table {name}" + (f": write `{name}`" if name in there else ""))
    if is_case_sensitive:
        return name
    alike = sorted(column for column in there if column.lower() == name.lower())
    if len(alike) > 1:
        raise Unreadable(
            f"topics {' and '.join(alike)} are the same to SQL; with --conf spark.sql.caseSensitive=true they are not"
        )
    return alike[0] if alike else name


def _missing(error: AnalysisException) -> list[str] | None:
    """
    The name, in parts, of a table that Spark does not know; None for any other error.
    """
    parameter = _UNKNOWN.get(error.getCondition() or "")
    if parameter is None:
        return None
    text: str = (error.getMessageParameters() or {}).get(parameter, "")
    return [part.replace("``", "`") for part in _PART.findall(text)] or None


def run_statement(spark: Any, statement: str, tables: Tables, options: Options) -> AbstractContextManager[DataFrame]:
    needed = columns_needed(spark, statement, tables, options)

    def table(topic: str) -> DataFrame:
        return tables.table(topic, options(topic), needed.get(topic, COLUMNS))

    return analyzed(spark, statement, table, tables.topics)


def columns_needed(spark: Any, statement: str, tables: Tables, options: Options) -> Mapping[str, Collection[str]]:
    """
    The columns needed of each topic, if Spark reports them.
    """
    folders: dict[str, Path] = {}
    with tempfile.TemporaryDirectory(prefix="kgateway-outlines-") as parent:

        def outline(topic: str) -> DataFrame:
            folders[topic] = Path(parent).resolve() / str(len(folders))
            return tables.outline(topic, options(topic), folders[topic])

        with analyzed(spark, statement, outline, tables.topics):
            plan = explained(spark, statement)
    read = {topic: columns_read(plan, folder) for topic, folder in folders.items()}
    return {topic: columns for topic, columns in read.items() if columns is not None}
