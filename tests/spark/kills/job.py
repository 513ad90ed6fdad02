"""
A query that copies a topic into another, exactly once, on a cluster of two executors.

    python job.py BOOTSTRAP SOURCE SINK CHECKPOINT
"""

import sys

from pyspark.sql import SparkSession

from pyspark_kgateway import exactly_once
from tests.spark.kills.driver import CLUSTER

SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


def main(bootstrap: str, source: str, sink: str, checkpoint: str) -> None:
    builder = SparkSession.builder.master(CLUSTER).appName("kills")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    server = {"kafka.bootstrap.servers": bootstrap}
    stream = builder.getOrCreate().readStream.format("kgateway").options(subscribe=source, **server)
    rows = stream.options(startingOffsets="earliest", maxOffsetsPerTrigger="500").load()
    writer = rows.select("key", "value").writeStream.foreachBatch(exactly_once(topic=sink, **server))
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
