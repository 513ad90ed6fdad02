"""
Queries for both sources, and their answers in a form that two Pythons can exchange. Spark's own source runs in a Spark
and a Python of its own: they share only this file, so it imports nothing but PySpark.
"""

import re
import shutil
import tempfile
from typing import Any

Said = dict[str, Any]
_PATIENCE_S = 60
_LEFT_OUT = re.compile(r"\s+")


def said(spark: Any, source: str, asked: Said) -> Said:
    """
    The answer of a source, or the reason of its refusal.
    """
    spark.conf.set("spark.sql.session.timeZone", asked.get("time_zone", "UTC"))
    kinds = {"read": _read, "stream": _stream, "write": _write, "types": _types}
    try:
        return {"answer": kinds[asked["kind"]](spark, source, asked)}
    except Exception as error:  # an error of Spark, of its Java, or of a Python worker
        return {"refused": _LEFT_OUT.sub(" ", str(error))}


def _read(spark: Any, source: str, asked: Said) -> list[Said]:
    return _told(spark.read.format(source).options(**asked["options"]).load())


def _types(spark: Any, source: str, asked: Said) -> list[list[str]]:
    return [list(pair) for pair in spark.read.format(source).options(**asked["options"]).load().dtypes]


def _stream(spark: Any, source: str, asked: Said) -> list[Said]:
    rows: list[Said] = []

    def keep(frame: Any, batch: int) -> None:
        rows.extend(row | {"batch": batch} for row in _told(frame))

    checkpoint = tempfile.mkdtemp()
    frame = spark.readStream.format(source).options(**asked["options"]).load()
    query = frame.writeStream.foreachBatch(keep).trigger(availableNow=True).option("checkpointLocation", checkpoint)
    try:
        query = query.start()
        assert query.awaitTermination(_PATIENCE_S), "the stream does not end"
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return rows


def _write(spark: Any, source: str, asked: Said) -> None:
    spark.sql(asked["query"]).write.format(source).mode("append").options(**asked["options"]).save()


def _told(frame: Any) -> list[Said]:
    """
    The rows in order. Times are formatted as this session does.
    """
    shown = frame.selectExpr("*", "cast(timestamp as string) as shown").drop("timestamp")
    rows = [{name: _plain(value) for name, value in row.asDict(recursive=True).items()} for row in shown.collect()]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, list):
        return [{name: _plain(one) for name, one in header.items()} for header in value]
    return value
