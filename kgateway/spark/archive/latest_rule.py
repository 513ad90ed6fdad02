"""
Which records compaction keeps. The record of a key with the highest offset in a partition is its latest; earlier ones
are obsolete. A record without a value, a tombstone, says that the key was deleted. Records without a key make no other
record obsolete.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it  # noqa: N812  # as all the world writes it

from kgateway.spark.errors import Unreadable

TOMBSTONE = "key is not null and value is null"
_PLACE = "place of a record among those of its key"
_GOES = "whether a record goes"
_LEFT_OUT = "spark.sql.adaptive.optimizer.excludedRules"
_FORGETFUL = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"


def latest(records: DataFrame, *, keep_tombstones: bool) -> DataFrame:
    """
    The latest record of each key, and all records without a key. The sort spills to disk where memory is short.
    """
    newest_first = _of_key().orderBy(F.desc("offset"))
    found = records.withColumn(_PLACE, F.row_number().over(newest_first)).where(F.col(_PLACE) == 1).drop(_PLACE)
    return found if keep_tombstones else found.where(f"not ({TOMBSTONE})")


def removed_by_key(records: DataFrame, tombstones_before_ms: int | None) -> DataFrame:
    """
    The records to remove: those with a later one of their key and, where a time is given, tombstones that are older.
    """
    goes = F.lit(False)
    if tombstones_before_ms is not None:
        goes = F.expr(TOMBSTONE) & older(tombstones_before_ms)
    judged = records.withColumn(_GOES, goes).select("partition", "key", "offset", _GOES)
    return judged.withColumn(_GOES, F.col(_GOES) | has_newer()).where(F.col(_GOES)).drop(_GOES)


def has_newer() -> Column:
    return F.lead("offset").over(_of_key().orderBy("offset")).isNotNull()


def older(before_ms: int | None) -> Column:
    """
    Whether a record is older than this time; False for all without one.
    """
    if before_ms is None:
        return F.lit(False)
    return F.coalesce(F.col("timestamp") < F.timestamp_millis(F.lit(before_ms)), F.lit(False))


def _of_key() -> WindowSpec:
    alone = F.when(F.col("key").isNull(), F.col("offset"))
    return Window.partitionBy("partition", "key", alone)


def keys_seen(records: DataFrame) -> tuple[DataFrame, Observation]:
    """
    The same records, and an observation that counts them, and those without a key, when they are read.
    """
    records.sparkSession.conf.set(_LEFT_OUT, _FORGETFUL)  # this rule drops observations of plans without rows
    seen, keyless = Observation(), F.col("key").isNull()
    counted = records.observe(
        seen,
        F.count(F.lit(1)).alias("read"),
        F.count_if(keyless).alias("keyless"),
        F.min(F.when(keyless, F.struct("partition", "offset"))).alias("first"),
    )
    return counted, seen


def check_keys(seen: Mapping[str, Any]) -> None:
    """
    Raise Unreadable if some records have no key.
    """
    if seen["keyless"]:
        first = seen["first"]
        raise Unreadable(
            f"{seen['keyless']:,} records have no key, the first at offset {first.offset} of partition "
            f"{first.partition}: --keep-keyless keeps them all"
        )
