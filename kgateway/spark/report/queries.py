"""
Counts what is in a topic. Each question is one Spark query over the same offsets, which reads only the columns it
needs; the results are small, whatever the size of the topic.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from kgateway.client.offsets import Extent
from kgateway.spark.report.facts import Bin, Delay, Frequent, Keys, Latency, Part, Sizes, Slot, Times, TopicFacts
from kgateway.spark.report.plots import time_step

_SLOTS = 72
_TASK_RECORDS = 2_000_000
_FAR = 10  # the whole period is not drawn if it is longer than that of nearly all records by this factor
_NEARLY_ALL = [0.001, 0.999]
_MEDIAN_AND_LATE = [0.5, 0.99]
_EXACTNESS = 2_000  # of percentiles: the error is at most 1 in 2,000
_MOST = 10
_BY_SERVER = 1
_SENT_MS = "coalesce(try_cast(sent_text as bigint), unix_millis(try_cast(sent_text as timestamp)))"
Row = Any


@dataclass(frozen=True, slots=True)
class SentTime:
    """
    The place of a record's send time: a header, or a field of a JSON value, in milliseconds since 1970 or as an ISO
    time.
    """

    header: str | None = None
    field: str | None = None

    @property
    def column(self) -> str:
        return "headers array<struct<key:string,value:binary>>" if self.header is not None else "value binary"

    def sent_text(self) -> Any:
        """
        The text as a column; null without one.
        """
        if self.header is None:
            return F.get_json_object(F.col("value").cast("string"), f"$['{self.field}']")
        wanted = F.lit(self.header)
        return F.get(F.filter("headers", lambda header: header["key"] == wanted), 0)["value"].cast("string")

    def __str__(self) -> str:
        return f"the header {self.header}" if self.header is not None else f"the field {self.field}"


class TopicQueries:
    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        topic: str,
        extents: Mapping[int, Extent],
        step: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._extents = extents
        self._step = step
        starts = {str(index): extent.start for index, extent in extents.items()}
        ends = {str(index): extent.end for index, extent in extents.items()}
        self._options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": json.dumps({topic: starts}),
            "endingOffsets": json.dumps({topic: ends}),
            "failOnDataLoss": "false",  # records that retention deletes meanwhile are not counted
            "maxRecordsPerPartition": str(_TASK_RECORDS),
        }

    def facts(self, sent: SentTime | None) -> TopicFacts:
        if all(extent.start == extent.end for extent in self._extents.values()):
            return TopicFacts(self._topic, self._parts([]))
        self._step("times")
        span = self._rows("timestamp timestamp, timestampType int", _span)[0]
        if not span.records:  # offsets without records, left by compaction or transactions
            return TopicFacts(self._topic, self._parts([]))
        times = _times(span)
        self._step("volume and sizes")
        cells = self._rows("partition int, key binary, value binary, timestamp timestamp", _cells(times))
        self._step("keys")
        keys = self._keys(cells)
        latency = None
        if sent and times.of_server:
            self._step("latency")
            latency = self._latency(sent, times)
        return TopicFacts(
            name=self._topic,
            parts=self._parts(cells),
            times=_filled(times, cells),
            sizes=_sizes(cells),
            keys=keys,
            latency=latency,
            sent=str(sent) if sent else None,
        )

    def _read(self, schema: str) -> DataFrame:
        options = {**self._options, "includeHeaders": str("headers" in schema).lower()}
        return self._spark.read.schema(schema).format("kgateway").options(**options).load()

    def _rows(self, schema: str, query: Callable[[DataFrame], DataFrame]) -> list[Row]:
        rows: list[Row] = query(self._read(schema)).collect()
        return rows

    def _parts(self, cells: Iterable[Row]) -> list[Part]:
        records: dict[int, int] = defaultdict(int)
        size: dict[int, int] = defaultdict(int)
        for cell in cells:
            records[cell.partition] += cell.records
            size[cell.partition] += cell.bytes
        return [
            Part(index, extent.start, extent.end, records[index], size[index])
            for index, extent in sorted(self._extents.items())
        ]

    def _keys(self, cells: Sequence[Row]) -> Keys:
        without = sum(cell.without for cell in cells)
        if without == sum(cell.records for cell in cells):
            return Keys(0, without, [])
        counted = self._read("key binary").where("key is not null").groupBy("key").agg(F.count("*").alias("records"))
        counted = counted.persist()
        try:
            most = counted.orderBy(F.desc("records"), "key").limit(_MOST).collect()
            return Keys(counted.count(), without, [Frequent(bytes(row.key), row.records) for row in most])
        finally:
            counted.unpersist()

    def _latency(self, sent: SentTime, times: Times) -> Latency | None:
        read = self._read(f"timestamp timestamp, timestampType int, {sent.column}")
        sent_text = read.where(F.col("timestampType") == _BY_SERVER).select(
            "timestamp", sent.sent_text().alias("sent_text")
        )
        late = (F.unix_millis("timestamp") - F.expr(_SENT_MS)).alias("late")
        known = sent_text.select(_slot(times).alias("slot"), late).where("late is not null")
        share = F.percentile_approx("late", _MEDIAN_AND_LATE, _EXACTNESS).alias("late")
        rows = known.rollup("slot").agg(F.count("*").alias("records"), share, F.grouping("slot").alias("all")).collect()
        every = [row for row in rows if row["all"]]
        if not every or not every[0].records:
            return None
        slots = [Delay(row.slot * times.slot_ms, *row.late) for row in rows if not row["all"] and row.slot is not None]
        shown = [slot for slot in slots if _is_inside(slot.start_ms, times)]
        median_ms, late_ms = every[0].late
        return Latency(every[0].records, median_ms, late_ms, sorted(shown))


def _span(frame: DataFrame) -> DataFrame:
    ms = F.unix_millis("timestamp")
    return frame.agg(
        F.count("*").alias("records"),
        F.min(ms).alias("first"),
        F.max(ms).alias("last"),
        F.percentile_approx(ms, _NEARLY_ALL, _EXACTNESS).alias("nearly_all"),
        F.count_if(F.col("timestampType") == _BY_SERVER).alias("of_server"),
    )


def _times(span: Row) -> Times:
    """
    The period to draw, without counts.
    """
    first, last = span.first or 0, span.last or 0
    low, high = span.nearly_all or (first, last)
    if last - first > _FAR * max(high - low, 1_000):
        first, last = low, high
    return Times(first, last, time_step(last - first, _SLOTS), [], 0, span.of_server)


def _slot(times: Times) -> Any:
    return F.floor(F.unix_millis("timestamp") / times.slot_ms)


def _cells(times: Times) -> Callable[[DataFrame], DataFrame]:
    """
    Counts by partition, slot and size. Values of 0 and of 1 byte have the same size here.
    """

    def query(frame: DataFrame) -> DataFrame:
        size = F.length("value")
        power = F.when(F.isnotnull("value"), F.ceil(F.log2(F.greatest(size, F.lit(1)))))
        return frame.groupBy("partition", _slot(times).alias("slot"), power.alias("power")).agg(
            F.count("*").alias("records"),
            F.sum(F.coalesce(size, F.lit(0)) + F.coalesce(F.length("key"), F.lit(0))).alias("bytes"),
            F.count_if(F.isnull("key")).alias("without"),
            F.max(size).alias("largest"),
        )

    return query


def _is_inside(start_ms: int, times: Times) -> bool:
    return times.first_ms - times.slot_ms < start_ms <= times.last_ms


def _filled(times: Times, cells: Sequence[Row]) -> Times:
    """
    Add a slot for each period, also for those without records.
    """
    records: dict[int, int] = defaultdict(int)
    size: dict[int, int] = defaultdict(int)
    outside = 0
    for cell in cells:
        if cell.slot is None or not _is_inside(cell.slot * times.slot_ms, times):
            outside += cell.records
            continue
        records[cell.slot] += cell.records
        size[cell.slot] += cell.bytes
    first, last = times.first_ms // times.slot_ms, times.last_ms // times.slot_ms
    slots = [Slot(slot * times.slot_ms, records[slot], size[slot]) for slot in range(first, last + 1)]
    return Times(times.first_ms, times.last_ms, times.slot_ms, slots, outside, times.of_server)


def _sizes(cells: Sequence[Row]) -> Sizes:
    bins: dict[int, int] = defaultdict(int)
    for cell in cells:
        if cell.power is not None:
            bins[cell.power] += cell.records
    nulls = sum(cell.records for cell in cells if cell.power is None)
    powers = range(min(bins, default=0), max(bins, default=-1) + 1)
    return Sizes(
        [Bin(1 << power, bins[power]) for power in powers], max((cell.largest or 0 for cell in cells), default=0), nulls
    )
