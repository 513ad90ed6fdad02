"""
Spark's own Kafka source, in the Python of its Spark: `python bench/spark_own.py JARS`.

A line of its input is a server and a topic, and a line of its output what the query of `bench.spark` has found there.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.jars": ",".join(map(str, Path(sys.argv[1]).glob("*.jar"))),
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        server, topic, *query = json.loads(line)
        options = {"kafka.bootstrap.servers": server, "subscribe": topic}
        [row] = spark.read.format("kafka").options(**options).load().selectExpr(*query).collect()
        print(json.dumps(list(row)), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
