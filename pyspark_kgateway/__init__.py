"""
The name by which Spark finds the data source `kgateway` by itself: it looks into all modules called `pyspark_...`.
"""

from kgateway.spark.source import KGateway as DefaultSource
from kgateway.spark.writers.transactional import exactly_once

__all__ = ["DefaultSource", "exactly_once"]
