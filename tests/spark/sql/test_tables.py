"""
The seam between archive and log has each offset once, whatever changes.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Semaphore, Thread
from typing import Any

import pytest
from confluent_kafka import Producer

from kgateway.client.offsets import Extent
from kgateway.spark.archive.job import identity_of
from kgateway.spark.archive.task import MANY
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.sql.statement import analyzed
from kgateway.spark.sql.tables import Seam, TablePlan, Tables, description, seam
from kgateway.topic_partition import TopicPartition
from tests.spark.archive.archives import Archives
from tests.spark.gateway import PARTITIONS, Topics, numbered
from tests.spark.jobs import Run

QUERIES = 8
ISOLATION = "kafka.isolation.level"
ZERO, ONE, TWO = (TopicPartition("orders", index) for index in range(3))
COUNTED = (
    "SELECT _partition, count(*) AS rows, count(DISTINCT _offset) AS offsets, min(_offset) AS first, "
    "max(_offset) AS last, sum(CAST(CAST(_value AS STRING) AS BIGINT)) AS sum FROM `{}` GROUP BY _partition ORDER BY 1"
)


def test_the_log_is_read_from_where_the_archive_ends() -> None:
    """
    Partitions without an archive are read completely, and those archived to their end not at all.
    """
    found = seam({0: 10, 1: 7}, {ZERO: Extent(3, 12), ONE: Extent(0, 7), TWO: Extent(4, 6)})
    assert found.log == (OffsetRange(ZERO, 10, 12), OffsetRange(TWO, 4, 6))
    assert found.lost == ()


def test_an_empty_log_that_begins_where_the_archive_ends() -> None:
    """
    Retention may have deleted everything that is archived.
    """
    assert seam({0: 10}, {ZERO: Extent(10, 10)}) == seam({}, {ZERO: Extent(5, 5)})


def test_offsets_in_neither_are_reported() -> None:
    """
    Offsets between the end of the archive and the start of the log are reported, also of an empty log.
    """
    for end in (15, 12):
        found = seam({0: 10}, {ZERO: Extent(12, end)})
        assert found.log == ((OffsetRange(ZERO, 12, 15),) if end == 15 else ())
        assert found.lost == (
            "orders-0 is archived up to offset 9, but its log begins with 12 now: offsets 10 to 11 are in neither",
        )


def test_a_plan_is_described_in_a_line() -> None:
    """
    It counts the offsets of the log.
    """
    for end, offsets in ((1, "1 offset"), (1_000, "1,000 offsets")):
        plan = TablePlan("orders", {}, None, Seam((OffsetRange(ZERO, 0, end),), ()))
        assert description(plan) == f"orders: {offsets} in the log"


def test_a_log_that_ends_before_the_archive() -> None:
    """
    The shorter log is reported of a server; files alone may lag.
    """
    [lost] = seam({0: 10}, {ZERO: Extent(0, 8)}).lost
    assert lost.startswith("orders-0 ends at offset 8, but the archive has it up to 9: ")
    found = seam({0: 10}, {ZERO: Extent(0, 8)}, may_lag=True)
    assert (found.log, found.lost) == ((), ())


def test_a_missing_partition() -> None:
    """
    The archive has a partition that the topic lacks.
    """
    with pytest.raises(Unreadable, match="the archive has partition 2, but the topic does not"):
        seam({0: 10, 2: 5}, {ZERO: Extent(0, 10)})


@contextmanager
def repeating(*steps: Callable[[], None]) -> Iterator[None]:
    """
    Repeat each of these in a thread.
    """
    over, failures = Event(), list[Exception]()

    def repeat(step: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                step()
        except Exception as failure:
            failures.append(failure)

    threads = [Thread(target=repeat, args=[step]) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures


def expected(row: dict[str, Any]) -> dict[str, Any]:
    """
    The counts and sums of this many records.
    """
    rows, partition = row["rows"], row["_partition"]
    total = sum(range(partition, partition + PARTITIONS * rows, PARTITIONS))
    return {"_partition": partition, "rows": rows, "offsets": rows, "first": 0, "last": rows - 1, "sum": total}


def test_each_offset_once_while_all_moves(topics: Topics, archives: Archives, sql: Run) -> None:
    """
    Records are written, archived, merged into larger files, and removed from the log once archived, while queries run:
    each query returns every record that existed at its start once.
    """
    archives.file_bytes = 8_000
    turns = Semaphore(0)  # of the producer, or files would be large at once
    topic, seen, archived = topics.make(*numbered(400)), Counter[str](), dict[int, int]()
    job = archives.job(topic)

    def produce() -> None:
        turns.acquire(timeout=1)
        topics.fill(topic, numbered(100, first=400 + 100 * seen["produced"]))
        seen["produced"] += 1

    def archive() -> None:
        for _ in job.rounds(job.extents()):
            pass
        seen["merged"] += job.merge()
        for partition, end in archived.items():
            topics.delete_records(topic, partition, end)
        seen["archived"] += 1
        turns.release(5)

    archive()
    with repeating(produce, archive):
        for number in range(QUERIES):
            there, asked = 400 + 100 * seen["produced"], COUNTED.format(topic)
            found = [json.loads(line) for line in sql(asked, "--archive", archives.path, "--format", "json")]
            assert found == [*map(expected, found)], f"query {number}"
            assert len(found) == PARTITIONS
            assert sum(row["rows"] for row in found) >= there
            archived |= job.manifest.ends
    starts = [topics.read(topic).where(f"partition = {index}").agg({"offset": "min"}).first()[0] for index in archived]
    assert min(starts) > 400
    assert seen["merged"] > 1
    assert seen["archived"] > QUERIES
    assert archives.verify(topic).faults == 0


def test_a_table_does_not_change(topics: Topics, archives: Archives, spark: Any) -> None:
    """
    Between the plan and the rows the archive grows, its files are merged, and the log grows and loses all archived
    records: the rows are those of the plan, even if a query names the table twice.
    """
    topic = topics.make(*numbered(100))
    for number in range(MANY):
        archives.archive(topic)
        topics.fill(topic, numbered(10, first=100 + 10 * number))
    folder = archives.folder(topic)
    asked = f"SELECT a._partition, a._offset, b._value FROM `{topic}` a JOIN `{topic}` b USING (_partition, _offset)"
    with Tables(spark, archives.options, {topic: folder}, print) as made:
        with analyzed(spark, asked, lambda name: made.table(name, {}), made.topics) as result:
            before = archives.names(topic)
            job = archives.job(topic)
            assert job.merge() == MANY * PARTITIONS
            topics.fill(topic, numbered(10, first=100 + 10 * MANY))
            for partition, end in job.manifest.ends.items():
                topics.delete_records(topic, partition, end)
            assert not set(before) & set(archives.names(topic))
            rows = [(row["_partition"], row["_offset"], int(row["_value"])) for row in result.collect()]
        assert os.listdir(folder.path / "_reading")
    each = 50 + 5 * MANY
    assert sorted(rows) == [(p, n, p + PARTITIONS * n) for p in range(PARTITIONS) for n in range(each)]
    assert not os.listdir(folder.path / "_reading")


def test_what_the_log_lost_before_it_was_archived(topics: Topics, archives: Archives, sql: Run, capsys: Any) -> None:
    """
    The query fails unless it accepts losses; a gap of the archive is reported too.
    """
    topic = topics.make(*numbered(20))
    archives.archive(topic)
    topics.fill(topic, numbered(20, first=20))
    topics.delete_records(topic, 0, 15)
    asked = (COUNTED.format(topic), "--archive", archives.path, "--format", "json")
    with pytest.raises(SystemExit):
        sql(*asked)
    lost = f"{topic}-0 is archived up to offset 9, but its log begins with 15 now: offsets 10 to 14 are in neither"
    assert capsys.readouterr().err.startswith(f"kgateway spark sql: {lost}. With failOnDataLoss=false ")
    found = [json.loads(line) for line in sql(*asked, "--option", "failOnDataLoss=false")]
    assert [(row["rows"], row["first"], row["last"]) for row in found] == [(15, 0, 19), (20, 0, 19)]
    assert f"{lost}\n" in capsys.readouterr().err
    archives.archive(topic)
    found = [json.loads(line) for line in sql(*asked)]
    assert [(row["rows"], row["first"], row["last"]) for row in found] == [(15, 0, 19), (20, 0, 19)]
    assert (
        f"{topic}-0: offsets 10 to 14 had been deleted from the log before they were archived\n"
        in capsys.readouterr().err
    )


def test_an_archive_that_grows_between_two_looks(
    topics: Topics, archives: Archives, sql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The plan is repeated where records were archived and deleted between the looks at archive and log.
    """
    topic, looks = topics.make(*numbered(20)), list[int]()
    archives.archive(topic)
    topics.fill(topic, numbered(20, first=20))

    def late(*arguments: Any) -> Any:
        looks.append(len(looks))
        if len(looks) == 1:
            for partition, end in archives.archive(topic).ends.items():
                topics.delete_records(topic, partition, end)
        return identity_of(*arguments)

    monkeypatch.setattr("kgateway.spark.sql.tables.identity_of", late)
    found = [json.loads(line) for line in sql(COUNTED.format(topic), "--archive", archives.path, "--format", "json")]
    assert found == [*map(expected, found)]
    assert ([row["rows"] for row in found], looks) == ([20, 20], [0, 1])


def test_the_log_is_read_as_the_archive_was(topics: Topics, archives: Archives, sql: Run, capsys: Any) -> None:
    """
    Aborted records are in neither part, or in both.
    """
    topic = topics.make(*numbered(4))
    aborting = {"bootstrap.servers": topics.kafka.bootstrap, "transactional.id": f"{topic}-aborting"}

    def abort(value: bytes) -> None:
        producer = Producer(aborting)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        producer.abort_transaction(30)

    abort(b"in the archive")
    every = replace(archives, path=archives.path / "every", options=archives.options | {ISOLATION: "read_uncommitted"})
    archives.archive(topic)
    every.archive(topic)
    abort(b"in the log")
    asked = (f"SELECT _value FROM `{topic}` WHERE _partition = 0 ORDER BY _offset", "--format", "csv")
    assert sql(*asked, "--archive", archives.path / topic) == ["_value", "0", "2"]
    assert sql(*asked) == ["_value", "0", "2"]
    assert sql(*asked, "--archive", every.path) == ["_value", "0", "2", "in the archive", "in the log"]
    with pytest.raises(SystemExit):
        sql(*asked, "--archive", every.path, "--option", f"{ISOLATION}=read_committed")
    assert f"the archive was begun with {ISOLATION}=read_uncommitted" in capsys.readouterr().err


def test_committed_records_need_a_server(topics: Topics, archives: Archives, spark: Any) -> None:
    """
    A read_committed archive cannot be joined with a log's files alone.
    """
    topic = topics.make(*numbered(4))
    archives.archive(topic)
    found = Tables(spark, {"kgateway.log.folder": "/nowhere"}, {topic: archives.folder(topic)}, print)
    with found, pytest.raises(Unreadable, match="can only be read that way with a server"):
        found.table(topic, {})


def test_a_recreated_topic(topics: Topics, archives: Archives, sql: Run, capsys: Any) -> None:
    """
    The archive of an earlier topic is refused.
    """
    topic = topics.make(*numbered(4))
    archives.archive(topic)
    topics.delete(topic)
    topics.make(*numbered(20), name=topic)
    with pytest.raises(SystemExit):
        sql(f"SELECT * FROM `{topic}`", "--archive", archives.path)
    assert f"topic {topic} was deleted and recreated since it was archived" in capsys.readouterr().err
