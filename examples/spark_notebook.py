# %% [markdown]
# # Explore a topic with Spark
#
# Open this file in an editor that runs cells (VS Code, PyCharm, Spyder), turn it into a notebook with
# `jupytext --to ipynb`, or run it as a program:
#
#     kgateway serve &
#     python examples/spark_notebook.py
#
# It needs Java 17 and `pip install -e '.[spark]'`. `KGATEWAY_BOOTSTRAP` names another server.

# %% Start Spark
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as in Spark's own documentation

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
READINGS, HOURLY = "notebook-readings", "notebook-hourly"
server = {"kafka.bootstrap.servers": os.environ.get("KGATEWAY_BOOTSTRAP", "127.0.0.1:9092")}

# %% [markdown]
# ## Sample data
#
# Three thermometers send a reading every 30 seconds for a day, as JSON. One of them is broken for a moment. The server
# creates the topic, because it is missing. In the second run the topic has records, and nothing is written.

# %% Fill the topic
at = F.expr("timestamp '2026-06-01' + make_interval(0, 0, 0, 0, 0, 0, 30 * id)")
sensor = F.concat(F.lit("sensor-"), F.col("id") % 3)
celsius = F.round(15 + 4 * (F.col("id") % 3) - 7 * F.cos(2 * F.pi() * (F.col("id") / 2880 - 0.125)) + F.rand(1), 1)
sample = spark.range(2880).select(
    sensor.alias("key"),
    F.when(F.col("id") == 1000, "ERROR 17")
    .otherwise(F.to_json(F.struct(at.alias("at"), sensor.alias("sensor"), celsius.alias("celsius"))))
    .alias("value"),
)
if not spark.read.format("kgateway").options(**server, subscribePattern=READINGS).load().count():
    sample.write.format("kgateway").options(**server, topic=READINGS).mode("append").save()

# %% [markdown]
# ## Read
#
# Without a schema, values are bytes. With one, they are columns, and what does not match it is in `_corrupt_record`.

# %% Look at the records as they are
raw = spark.read.format("kgateway").options(**server, subscribe=READINGS).load()
raw.selectExpr("partition", "offset", "timestamp", "cast(key AS string)", "cast(value AS string)").show(3, truncate=60)

# %% Read typed columns
typed = (
    spark.read.format("kgateway")
    .options(**server, subscribe=READINGS)
    .option("value.format", "json")
    .option("value.schema", "at timestamp, sensor string, celsius double, _corrupt_record string")
    .load()
    .select("partition", "offset", "value.*")
    .cache()
)
typed.printSchema()

# %% [markdown]
# ## Explore

# %% How many readings are there, and of what?
typed.groupBy("sensor").agg(
    F.count("*").alias("readings"), F.min("celsius"), F.round(F.avg("celsius"), 1).alias("average"), F.max("celsius")
).orderBy("sensor").show()

# %% Which ones are malformed?
typed.where("_corrupt_record IS NOT NULL").select("offset", "_corrupt_record").show()

# %% [markdown]
# ## Aggregate per window
#
# One row for each sensor and hour.

# %% Average per hour
hourly = (
    typed.where("at IS NOT NULL")
    .groupBy(F.window("at", "1 hour").start.alias("hour"), "sensor")
    .agg(F.round(F.avg("celsius"), 2).alias("celsius"))
)
hourly.orderBy("hour", "sensor").show(6)

# %% Write the averages back, as JSON, with the sensor as the key
records = hourly.select(F.col("sensor").alias("key"), F.to_json(F.struct("*")).alias("value"))
records.write.format("kgateway").options(**server, topic=HOURLY).mode("append").save()
written = spark.read.schema("offset long").format("kgateway").options(**server, subscribe=HOURLY).load().count()
print(f"{written} records in {HOURLY}")

# %% [markdown]
# ## Show
#
# pandas turns rows into a table with a column for each sensor. `table.plot()` draws it, if matplotlib is installed;
# here blocks of text do.

# %% A table, and a plot
table = hourly.toPandas().pivot(index="hour", columns="sensor", values="celsius")
print(table.head(4))
low, high = table.min().min(), table.max().max()
for name in table.columns:
    bars = "".join("▁▂▃▄▅▆▇█"[int((value - low) / (high - low) * 7)] for value in table[name])
    print(f"{name}  {bars}  {table[name].min():.1f} to {table[name].max():.1f} °C")

# %% Stop Spark
spark.stop()
