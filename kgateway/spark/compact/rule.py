"""
Which records stay. In a partition the record of a key with the highest offset is its latest; the earlier ones say what
nobody asks for any more. One without a value, a tombstone, says that the key is gone. Records without a key are no news
of any other.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

TOMBSTONE = "key is not null and value is null"
_PLACE = "place of a record among those of its key"
_GOES = "whether a record goes"


def latest(records: DataFrame, *, keep_tombstones: bool) -> DataFrame:
    """
    The latest record of each key, and all without one. What sorts them goes to disk where memory is short.
    """
    newest_first = _of_key().orderBy(F.desc("offset"))
    found = records.withColumn(_PLACE, F.row_number().over(newest_first)).where(F.col(_PLACE) == 1).drop(_PLACE)
    return found if keep_tombstones else found.where(f"not ({TOMBSTONE})")


def removed_by_key(records: DataFrame, tombstones_before_ms: int | None) -> DataFrame:
    """
    Those that go: that have a newer one of their key, and tombstones that are older than this, where that is given.
    """
    goes = F.lit(False)
    if tombstones_before_ms is not None:
        goes = F.expr(TOMBSTONE) & older(tombstones_before_ms)
    judged = records.withColumn(_GOES, goes).select("partition", "key", "offset", _GOES)
    return judged.withColumn(_GOES, F.col(_GOES) | has_newer()).where(F.col(_GOES)).drop(_GOES)


def has_newer() -> Column:
    """
    Whether there is a later record of the same key.
    """
    return F.lead("offset").over(_of_key().orderBy("offset")).isNotNull()


def older(before_ms: int | None) -> Column:
    """
    Whether a record is older than this; none is, where no time is given.
    """
    if before_ms is None:
        return F.lit(False)
    return F.coalesce(F.col("timestamp") < F.timestamp_millis(F.lit(before_ms)), F.lit(False))


def _of_key() -> WindowSpec:
    alone = F.when(F.col("key").isNull(), F.col("offset"))
    return Window.partitionBy("partition", "key", alone)
