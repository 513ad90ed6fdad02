"""
Which columns a statement needs. Spark does not tell that to a source in Python, which so would read them all. But of
files it says what it would read: so it explains the statement over empty folders of Parquet with the same columns.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from kgateway.spark.sql.columns import Decoders, as_table, schema

_SCAN = re.compile(r"^\(\d+\) Scan parquet.*\n(?P<facts>(?:.+\n)+)", re.MULTILINE)
_OUTPUT = re.compile(r"^Output(?: \[(?P<count>\d+)\])?: \[(?P<names>.*)\]$", re.MULTILINE)
_NAME = re.compile(r"(\w+)#\d+")


def outline(spark: Any, folder: Path, source: str, decoders: Decoders) -> DataFrame:
    """
    A table with the columns of a topic and nothing in it, which has this folder for its own.
    """
    folder.mkdir(exist_ok=True)
    return as_table(spark.read.schema(schema(decoders)).parquet(folder.as_uri()), source, decoders)


def explained(spark: Any, statement: str) -> str:
    """
    The plan of a statement.
    """
    [row] = spark.sql(f"EXPLAIN FORMATTED {statement}").collect()
    return str(row[0])


def columns_read(plan: str, folder: Path) -> Collection[str] | None:
    """
    What a plan reads of the files in this folder; None where it does not say.
    """
    found = None
    for scan in _SCAN.finditer(plan):
        if f"[file:{folder}]" not in scan["facts"]:
            continue
        output = _OUTPUT.search(scan["facts"])
        names = _NAME.findall(output["names"]) if output else []
        if output is None or len(names) != int(output["count"] or 0):
            return None
        found = {*(found or ()), *names}
    return found
