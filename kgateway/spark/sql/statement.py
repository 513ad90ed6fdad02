"""
A statement of SQL, and the topics that it names. Spark says which table it does not know; if that is a topic it gets to
know it, and is asked again.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from kgateway.spark.failures import Unreadable, WrongOption

_UNKNOWN = {"TABLE_OR_VIEW_NOT_FOUND": "relationName", "REQUIRES_SINGLE_PART_NAMESPACE": "identifier"}
_PART = re.compile(r"`((?:[^`]|``)+)`")
_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "DESCRIBE", "DESC", "(")


def check(statement: str) -> None:
    """
    Refuse what is no query.
    """
    at = 0
    while comment := _COMMENT.match(statement, at):
        at = comment.end()
    if not statement[at:].upper().startswith(_QUERIES):
        raise WrongOption(f"this is no query: a statement begins with {', '.join(_QUERIES[:-1])}")


@contextmanager
def answered(
    spark: Any, statement: str, table: Callable[[str], DataFrame], topics: Callable[[], Collection[str]]
) -> Iterator[DataFrame]:
    """
    What the statement gives, with these topics as its tables.
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
    Which topic is meant by the name of a table. It may be none that is there.
    """
    name = ".".join(parts)
    if len(parts) > 1:
        raise Unreadable(f"there is no table {name}" + (f": write `{name}`" if name in there else ""))
    if is_case_sensitive:
        return name
    alike = sorted(one for one in there if one.lower() == name.lower())
    if len(alike) > 1:
        raise Unreadable(
            f"topics {' and '.join(alike)} are the same to SQL; with --conf spark.sql.caseSensitive=true they are not"
        )
    return alike[0] if alike else name


def _missing(error: AnalysisException) -> list[str] | None:
    """
    The parts of the name of a table that Spark does not know; nothing where something else is wrong.
    """
    parameter = _UNKNOWN.get(error.getCondition() or "")
    if parameter is None:
        return None
    told: str = (error.getMessageParameters() or {}).get(parameter, "")
    return [part.replace("``", "`") for part in _PART.findall(told)] or None
