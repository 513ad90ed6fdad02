"""
Spark's own Kafka source in a process: each line of input is a query, each line of output its answer.

It runs in the Python of that Spark: `python source_process.py JARS`.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from queries import said  # type: ignore[import-not-found]  # beside this file, wherever that is

SETTINGS = {
    "spark.jars": ",".join(map(str, Path(sys.argv[1]).glob("*.jar"))),
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").appName("own")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        print(json.dumps(said(spark, "kafka", json.loads(line))), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
