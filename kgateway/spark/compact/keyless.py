"""
Records without a key, of which none is later than another.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.spark.failures import Unreadable

_LEFT_OUT = "spark.sql.adaptive.optimizer.excludedRules"
_FORGETFUL = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"


def keys_seen(records: DataFrame) -> tuple[DataFrame, Observation]:
    """
    The same records, and what is seen of them when they are read: how many there are, and how many have no key.
    """
    records.sparkSession.conf.set(_LEFT_OUT, _FORGETFUL)  # where nothing comes of records it forgets what was seen
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
    Unreadable where some have none.
    """
    if seen["keyless"]:
        first = seen["first"]
        raise Unreadable(
            f"{seen['keyless']:,} records have no key, the first at offset {first.offset} of partition "
            f"{first.partition}: --keep-keyless keeps them all"
        )
