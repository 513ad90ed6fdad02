"""
A pipeline in one command: a shop's orders are written to a topic, Spark adds them up as they arrive, the sums are
written to another topic and to Parquet files, SQL queries the files, and the result becomes a picture.

    python examples/pipeline.py

It starts its own gateway and stores everything in the folder `pipeline`. Run again, it continues where it ended.
"""

import argparse
import json
import math
import os
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kgateway.cli.common.values import positive
from kgateway.client.cluster import Cluster, partitions_of
from kgateway.client.connection import Address, Unanswered
from kgateway.client.offsets import extents
from kgateway.client.producer import Producer
from kgateway.client.send_queue import OutgoingRecord
from kgateway.client.topics import create_topic
from kgateway.extras import not_installed
from kgateway.spark.signals import Interrupted, running
from kgateway.testing import Kafka

try:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
    from pyspark.sql.streaming import StreamingQuery
except ModuleNotFoundError as error:
    sys.exit(not_installed(error) or str(error))

ORDERS, SUMS = "pipeline-orders", "pipeline-sums"
TOPICS = {ORDERS: {"retention.ms": "-1"}, SUMS: {"cleanup.policy": "compact"}}
PARTITIONS = 2
ORDER = "at timestamp, fruit string, cents long"
CENTS = {"apples": 90, "melons": 190, "pears": 120, "plums": 60}  # of one
COLOURS = ("#2f6690", "#81a4cd", "#d98324", "#8f2d56")
OPENED = datetime(2026, 1, 5, tzinfo=UTC)
DAY_S = 86_400
QUARTER = "15 minutes"


def main() -> None:
    """
    Run all steps in order; orders still arrive while Spark sums them up.
    """
    options = arguments()
    try:
        run(options, options.folder.resolve())
    except KeyboardInterrupt as signal:
        print("interrupted: all orders that were sent are kept; run it again to continue", file=sys.stderr)
        sys.exit(signal.exit_code if isinstance(signal, Interrupted) else 130)


def run(options: argparse.Namespace, folder: Path) -> None:
    with ExitStack() as stack:
        bootstrap = str(options.bootstrap or gateway(stack, folder / "gateway"))
        cluster = stack.enter_context(connected(bootstrap))
        spark = stack.enter_context(session(options.master))
        first = orders_so_far(cluster)
        query = sum_up(spark, bootstrap, folder)
        stack.callback(query.stop)  # also after an interrupt: a stream that ends after Spark prints a traceback
        generate(cluster, first, options.orders, options.orders_a_day)
        query.processAllAvailable()
        query.stop()
        rows = ask(spark, folder)
    picture = folder / "picture.svg"
    picture.write_text(drawn(rows))
    print(f"{first + options.orders:,} orders in all; open {picture} in a browser")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("pipeline"), help="where everything is stored: `pipeline`")
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", type=Address.parse, help="a running gateway; without it, one is started"
    )
    parser.add_argument("--master", default="local[2]", help="where Spark runs: `local[2]`")
    parser.add_argument("--orders", type=positive, default=50_000, help="how many orders arrive: 50,000, of one day")
    parser.add_argument("--orders-a-day", type=positive, default=50_000, help="how fast the shop's time goes by")
    return parser.parse_args()


def gateway(stack: ExitStack, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    kafka = stack.enter_context(Kafka(folder=folder))
    print(f"a gateway is running on {kafka.bootstrap}", flush=True)
    return kafka.bootstrap


def connected(bootstrap: str) -> Cluster:
    cluster = Cluster([Address.parse(bootstrap)], 30)
    try:
        cluster.any_server()
    except Unanswered as error:
        sys.exit(f"no gateway responds: {error}")
    return cluster


def session(master: str) -> AbstractContextManager[SparkSession]:
    """
    Spark, which also stops at Ctrl-C.
    """
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        sys.exit("Spark needs Java 17 or newer: there is no `java` on the PATH, and JAVA_HOME is not set")
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(master).appName("pipeline").config("spark.sql.session.timeZone", "UTC")
    for quiet in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(quiet, "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "2")

    def start() -> SparkSession:
        print("Spark is starting, which takes a few seconds", flush=True)
        return builder.getOrCreate()

    return running(start)


def orders_so_far(cluster: Cluster) -> int:
    """
    The number of orders in the topic, which is created if it is missing.
    """
    found = partitions_of(cluster, TOPICS)
    for name in TOPICS.keys() - found.keys():
        create_topic(cluster, name, PARTITIONS, 1, TOPICS[name])
    return sum(one.end - one.start for one in extents(cluster, found.get(ORDERS, [])).values())


def generate(cluster: Cluster, first: int, count: int, a_day: int) -> None:
    """
    Step 1, the generator: orders as JSON, with the customer as key.
    """
    producer = Producer(cluster, ORDERS)
    for at, customer, fruit, cents in orders(first, count, a_day):
        value = json.dumps({"at": at.isoformat(), "fruit": fruit, "cents": cents}).encode()
        producer.send(OutgoingRecord(customer.encode(), value, round(at.timestamp() * 1000), (), None, "the generator"))
    producer.flush()
    print(f"{count:,} orders are in the topic {ORDERS}")


def orders(first: int, count: int, a_day: int) -> Iterator[tuple[datetime, str, str, int]]:
    """
    The same orders in each run: most of them at noon, and each fruit is most popular at some hour.
    """
    chance = random.Random(first)
    for number in range(first, first + count):
        day, share = divmod(number / a_day, 1)
        hour = 24 * (share + 0.08 * math.sin(2 * math.pi * share))
        liked = [1.2 + math.cos((hour - 8 - 4 * place) / 24 * 2 * math.pi) for place in range(len(CENTS))]
        [fruit] = chance.choices([*CENTS], liked)
        at = OPENED + timedelta(days=day, hours=hour)
        yield at, f"customer-{chance.randrange(500)}", fruit, CENTS[fruit] * chance.randint(1, 9)


def sum_up(spark: SparkSession, bootstrap: str, folder: Path) -> StreamingQuery:
    """
    Step 2, the stream: what each fruit earns in each quarter of an hour.
    """
    at = {"kafka.bootstrap.servers": bootstrap}
    stream = (
        spark.readStream.format("kgateway")
        .options(**at, subscribe=ORDERS, startingOffsets="earliest", maxOffsetsPerTrigger=20_000)
        .options(**{"value.format": "json", "value.schema": ORDER})
        .load()
    )
    quarter = F.window("value.at", QUARTER).start.alias("quarter")
    sums = stream.groupBy(quarter, "value.fruit").agg(F.sum("value.cents").alias("cents"), F.count("*").alias("orders"))

    def take(changed: DataFrame, batch: int) -> None:
        """
        Step 3: write the sums that this batch has changed to both places. A batch that is retried does no harm: in the
        topic the last sum of a key counts, and the files of a batch replace its earlier ones.
        """
        changed = changed.persist()
        keyed = F.concat_ws(" ", F.date_format("quarter", "yyyy-MM-dd HH:mm"), "fruit").alias("key")
        rows = changed.select(keyed, F.to_json(F.struct("quarter", "fruit", "cents", "orders")).alias("value"))
        rows.write.format("kgateway").options(**at, topic=SUMS).mode("append").save()
        changed.coalesce(1).write.mode("overwrite").parquet(str(folder / "sums" / f"batch={batch}"))
        print(f"batch {batch}: {changed.count():,} sums have changed")
        changed.unpersist()

    writer = sums.writeStream.foreachBatch(take).outputMode("update")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def ask(spark: SparkSession, folder: Path) -> list[Any]:
    """
    Step 4, SQL: the last version of each sum, then the sums of each hour.
    """
    spark.read.parquet(str(folder / "sums")).createOrReplaceTempView("sums")
    answer = spark.sql("""
        WITH latest AS (SELECT quarter, fruit, max_by(cents, batch) AS cents FROM sums GROUP BY quarter, fruit)
        SELECT date_trunc('hour', quarter) AS hour, fruit, sum(cents) / 100 AS euros
        FROM latest GROUP BY ALL ORDER BY hour, fruit
    """)
    of_fruit = answer.groupBy("fruit").agg(F.round(F.sum("euros"), 2).alias("euros"), F.count("*").alias("hours"))
    of_fruit.orderBy("fruit").show()
    rows: list[Any] = answer.collect()
    return rows


def drawn(rows: Sequence[Any]) -> str:
    """
    Step 5, the picture: stacked areas, one color for each fruit, hour by hour.
    """
    euros = {(row.hour, row.fruit): float(row.euros) for row in rows}
    hours = sorted({row.hour for row in rows})
    hours = [hours[0] + timedelta(hours=number) for number in range((hours[-1] - hours[0]) // timedelta(hours=1) + 1)]
    most = max(sum(euros.get((hour, fruit), 0) for fruit in CENTS) for hour in hours)
    step = int(10 ** max(math.floor(math.log10(most / 2)), 0))
    step *= 5 if most >= 8 * step else 1
    steps = math.ceil(most / step)
    left, right, top, bottom = 70, 820, 70, 370

    def x(place: int) -> float:
        return left + (right - left) * place / max(len(hours) - 1, 1)

    def y(sum_: float) -> float:
        return bottom - (bottom - top) * sum_ / (steps * step)

    parts = [text(left, 34, "What the shop earns in an hour, in euros", 'class="title"')]
    for line in range(0, (steps + 1) * step, step):
        parts += [f'<path class="grid" d="M{left},{y(line):.1f}H{right}"/>']
        parts += [text(left - 8, y(line) + 4, f"{line:,}", 'text-anchor="end"')]
    below = [0.0] * len(hours)
    for fruit, colour in zip(CENTS, COLOURS, strict=True):
        above = [base + euros.get((hour, fruit), 0) for base, hour in zip(below, hours, strict=True)]
        edge = [*enumerate(above), *reversed([*enumerate(below)])]
        points = " ".join(f"{x(place):.1f},{y(sum_):.1f}" for place, sum_ in edge)
        total = f"{sum(above) - sum(below):,.0f} euros"
        parts += [f'<polygon fill="{colour}" points="{points}"><title>{fruit}: {total}</title></polygon>']
        beside = 360 - 70 * [*CENTS].index(fruit)
        parts += [f'<rect x="{right + 20}" y="{beside - 12}" width="14" height="14" fill="{colour}"/>']
        parts += [text(right + 42, beside, fruit, 'class="name"'), text(right + 42, beside + 18, total)]
        below = above
    every = next(step for step in (3, 6, 12, 24, 72, 168, 720, 8760) if len(hours) <= 10 * step)
    for place, hour in enumerate(hours):
        if (hour - hours[0].replace(month=1, day=1, hour=0)) // timedelta(hours=1) % every == 0:
            shown = f"{hour:%H:%M}" if hour.hour else f"{hour:%d %b}"
            parts += [text(x(place), bottom + 22, shown, 'text-anchor="middle"')]
    return SVG.format("\n".join(parts))


def text(x: float, y: float, words: str, how: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {how}>{words}</text>'


SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 420" font-family="sans-serif" font-size="13">
<style>text {{ fill: #444 }} .title {{ font-size: 19px; fill: #111 }} .name {{ font-size: 15px; fill: #111 }}
.grid {{ stroke: #ddd }}</style>
<rect width="980" height="420" fill="#fff"/>
{}
</svg>
"""


if __name__ == "__main__":
    main()
