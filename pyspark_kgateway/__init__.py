"""
The name by which Spark finds the data source `kgateway` by itself: it looks into all modules called `pyspark_...`.
"""

from kgateway.spark.exactly_once.sink import exactly_once
from kgateway.spark.source import KGateway as DefaultSource

__all__ = ["DefaultSource", "exactly_once"]
