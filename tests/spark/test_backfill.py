"""
Backfills: files into topics of a running gateway, interrupted and restarted.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import NewPartitions, NewTopic  # type: ignore[attr-defined]  # its stubs do not pass it on

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address
from kgateway.client.group_offsets import committed_offsets
from kgateway.client.producer import partition_of
from kgateway.client.topics import create_topic
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.spark.backfill.appender import SEQUENCES, Appender, _row_of, progress_of
from kgateway.spark.backfill.batch_encoder import Columns, ProducerEpoch, batch_of
from kgateway.spark.backfill.job import load_state, save_state
from kgateway.spark.backfill.task import BackfillTask, Pace
from kgateway.spark.errors import Unreadable, Unwritten
from kgateway.spark.writers.partition_rows import partitions_of
from kgateway.testing.kafka import Kafka
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError
from tests.spark.gateway import PARTITIONS, Topics
from tests.spark.jobs import Run, runner

ROOT = Path(__file__).parents[2]
DAY = 1_763_683_200_000
ME = ProducerEpoch(7_000_000, 0)
Rows = list[dict[str, Any]]


@pytest.fixture
def backfill(topics: Topics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """
    The command, in a folder of its own.
    """
    monkeypatch.chdir(tmp_path)
    return runner(topics, monkeypatch, "backfill")


@pytest.fixture
def refused(backfill: Run, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """
    The message of the command's refusal.
    """

    def run(*given: object) -> str:
        with pytest.raises(SystemExit) as end:
            backfill(*given)
        assert end.value.code in {1, 2}
        return capsys.readouterr().err.splitlines()[-1].removeprefix("kgateway spark backfill: ")

    return run


def sales(count: int, first: int = 0) -> Rows:
    """
    Rows of some customers, in random order of their numbers.
    """
    chance = random.Random(first)
    rows = [
        {"number": number, "who": f"customer-{chance.randrange(20)}", "at": DAY + number // 3 * 1_000, "note": None}
        for number in range(first, first + count)
    ]
    chance.shuffle(rows)
    return rows


def write_json(path: str, rows: Rows) -> str:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: str, rows: Rows) -> str:
    lines = [",".join(rows[0]), *(",".join("" if one is None else str(one) for one in row.values()) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: str, rows: Rows) -> str:
    """
    Write row groups of a few rows.
    """
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50)
    return path


def held(topics: Topics, topic: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in sorted(topics.read(topic).collect(), key=lambda row: (row.partition, row.offset)):
        found[row.partition].append(row)
    return found


def numbers_of(records: Sequence[Any]) -> list[int]:
    return [int(json.loads(record.value)["number"]) for record in records]


def assert_each_once(topics: Topics, topic: str, rows: Rows, order: Callable[[Any], Any], partitions: int) -> None:
    """
    Each row is there once, in order, in the partition that Kafka's clients would choose for its key.
    """
    expected: dict[int, list[int]] = defaultdict(list)
    for row in sorted(rows, key=order):
        expected[partition_of(row["who"].encode(), partitions)].append(row["number"])
    found = held(topics, topic)
    assert {index: numbers_of(records) for index, records in found.items()} == expected
    assert all(json.loads(one.value)["who"] == one.key.decode() for records in found.values() for one in records)


WRITERS = [write_json, write_csv, write_parquet]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_each_row_is_sent_once_in_order(topics: Topics, backfill: Run, write: Callable[[str, Rows], str]) -> None:
    """
    Rows of each file format are ordered by the named columns, and have the time of a column.
    """
    topic, rows = topics.make(partitions=3), sales(1_000)
    name = write(f"sales.{write.__name__.removeprefix('write_')}", rows)
    schema = ["--schema", "number long, who string, at long, note string"] if write is write_csv else []
    said = backfill(name, "--topic", topic, "--key", "who", "--order-by", "number", "--timestamp", "at", *schema)
    assert_each_once(topics, topic, rows, lambda row: row["number"], 3)
    for record in [one for records in held(topics, topic).values() for one in records]:
        told = json.loads(record.value)
        assert list(told) == ["number", "who", "at", "note"] or write is write_json
        assert told["note"] is None
        assert round(record.timestamp.timestamp() * 1_000) == told["at"]
    assert said[-2].startswith(f"1000 rows in {topic}, in ")
    assert said[-1] == f"live records begin at the committed offsets of the group backfill-{topic}"


def test_rows_equal_in_order(topics: Topics, backfill: Run) -> None:
    """
    Equal rows keep the order of the files' names and of the rows in them, however Spark splits the files.
    """
    topic, other, rows = topics.make(), topics.make(), sales(1_200)
    Path("parts").mkdir()
    for part in range(3):
        write_csv(f"parts/part-{part}.csv", rows[400 * part : 400 * part + 400])
    options = "--key", "who", "--order-by", "at"
    backfill("parts", "--topic", topic, *options, "--schema", "number long, who string, at long, note string")
    places = {row["number"]: place for place, row in enumerate(rows)}
    assert_each_once(topics, topic, rows, lambda row: (row["at"], places[row["number"]]), PARTITIONS)
    topics.spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        backfill("parts", "--topic", other, "--key", "who")
    finally:
        topics.spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert_each_once(topics, other, rows, lambda row: places[row["number"]], PARTITIONS)


def test_columns_as_they_are(topics: Topics, backfill: Run) -> None:
    """
    A column may be the value; bytes and nulls are unchanged, and numbers and structs become text.
    """
    topic = topics.make(partitions=1)
    rows = [
        {"key": 1, "value": b"\xff\x00", "more": {"a": [1, None]}},
        {"key": None, "value": None, "more": None},
        {"key": -7, "value": b"", "more": {"a": []}},
    ]
    pq.write_table(pa.Table.from_pylist(rows), "some.parquet")
    backfill("some.parquet", "--topic", topic, "--key", "key", "--value", "value", "--compression", "zstd")
    assert [(one.key, one.value) for one in held(topics, topic)[0]] == [(b"1", b"\xff\x00"), (None, None), (b"-7", b"")]
    backfill("some.parquet", "--topic", topic, "--key", "more", "--value", "key", "--state", "second.json")
    found = [(one.key, one.value) for one in held(topics, topic)[0][3:]]
    assert found == [(b'{"a":[1,null]}', b"1"), (None, None), (b'{"a":[]}', b"-7")]


def test_a_second_run_sends_nothing(topics: Topics, backfill: Run) -> None:
    """
    A second run finds all rows in the topic, and prints the same.
    """
    topic, rows = topics.make(), sales(300)
    given = write_json("sales.json", rows), "--topic", topic, "--key", "who", "--order-by", "number", "--marker"
    first = backfill(*given)
    second = backfill(*given)
    state = Path(f"backfill-{topic}.json")
    ended = load_state(state)
    assert ended
    save_state(state, replace(ended, handed_over=None))  # as if the run had stopped just before its end
    third = backfill(*given)
    assert first[:-2] == second[:-2] == third[:-2]
    told = json.loads("\n".join(backfill(*given, "--json")))
    assert (told["topic"], told["group"]) == (topic, f"backfill-{topic}")
    shown = [tuple(map(int, line.split())) for line in first[-PARTITIONS - 2 : -2]]
    assert [tuple(one.values()) for one in told["partitions"]] == shown
    assert list(told["partitions"][0]) == ["partition", "rows", "from", "live_from", "others"]
    assert sum(map(len, held(topics, topic).values())) == 300 + PARTITIONS


def test_the_hand_over(topics: Topics, backfill: Run) -> None:
    """
    The group's offset is the first live record; a marker may precede it; earlier records of others are reported.
    """
    topic = topics.make({"value": b"was there", "partition": 0}, {"value": b"was there", "partition": 1})
    given = write_json("sales.json", sales(100)), "--topic", topic, "--key", "who", "--marker", "--group", "live"
    said = backfill(*given)
    assert "OTHERS" in said[0]
    assert [line.split()[2:3] + line.split()[4:] for line in said[1 : 1 + PARTITIONS]] == [["1", "0"]] * PARTITIONS
    for records in held(topics, topic).values():
        assert [one.key for one in records if one.key == b"kgateway-backfill"] == [b"kgateway-backfill"]
        assert (records[-1].key, records[-1].value) == (b"kgateway-backfill", None)
    with Cluster([Address.parse(topics.kafka.bootstrap)], 10) as cluster:
        offsets = {one.index: found.offset for one, found in committed_offsets(cluster, "live").items()}
    assert offsets == {index: len(records) for index, records in held(topics, topic).items()}
    topics.fill(topic, [{"value": b"live", "partition": index} for index in range(PARTITIONS)])
    consumer = Consumer({"bootstrap.servers": topics.kafka.bootstrap, "group.id": "live"})
    consumer.subscribe([topic])
    assert [one.value() for one in consumer.consume(PARTITIONS, 30)] == [b"live"] * PARTITIONS
    consumer.close()


# The log as the memory of a backfill.


def columns(first: int, count: int, size: int = 20) -> Columns:
    values = [b"%d" % number + b" " * size for number in range(first, first + count)]
    keys = pa.array([b"k"] * count, pa.large_binary())
    return Columns(keys, pa.array(values, pa.large_binary()), np.full(count, DAY))


@pytest.fixture
def cluster(topics: Topics) -> Iterator[Cluster]:
    with Cluster([Address.parse(topics.kafka.bootstrap)], 10) as cluster:
        yield cluster


def append(appender: Appender, rows: Columns, most: int = 10) -> None:
    while not appender.has(rows):
        appender.append(rows, most)
    appender.skip(len(rows))


def values_of(topics: Topics, topic: str) -> list[int]:
    return [int(one.value) for one in held(topics, topic)[0]]


def test_a_restarted_appender_continues(topics: Topics, cluster: Cluster) -> None:
    """
    It continues behind its rows in the log, even if others have written much since, and in the middle of its input.
    """
    topic = topics.make({"value": b"-1"}, partitions=1)
    append(Appender(cluster, TopicPartition(topic, 0), 1, ME), columns(0, 25))
    topics.fill(topic, [{"value": b"-1"} for _ in range(12_000)])
    again = Appender(cluster, TopicPartition(topic, 0), 1, ME)
    append(again, columns(0, 20))
    append(again, columns(20, 20))
    assert again.appended == 15
    assert [number for number in values_of(topics, topic) if number >= 0] == list(range(40))
    assert progress_of(cluster, TopicPartition(topic, 0), 1, ME.producer_id).rows == 40


def test_an_earlier_attempt_that_still_runs(topics: Topics, cluster: Cluster) -> None:
    """
    Two appenders append the same rows by turns, in batches of other sizes, and each row is there once.
    """
    topic = topics.make(partitions=1)
    one, other = (Appender(cluster, TopicPartition(topic, 0), 0, ME) for _ in range(2))
    rows = columns(0, 300)
    turns = 0
    while not (one.has(rows) and other.has(rows)):
        for appender, most in ((one, 7), (one, 7), (other, 11), (other, 11)):
            if not appender.has(rows):
                appender.append(rows, most)
                turns += 1
    assert values_of(topics, topic) == list(range(300))
    assert min(one.appended, other.appended) > 50
    assert turns > 40


def test_batches_that_are_too_large(topics: Topics, cluster: Cluster) -> None:
    """
    Batches are halved until the topic takes them; the error names a single row that is too large.
    """
    topic = "small-batches"
    made = NewTopic(topic, 1, 1, config={"max.message.bytes": "2000", "retention.ms": "-1"})
    topics.admin.create_topics([made])[topic].result()
    appender = Appender(cluster, TopicPartition(topic, 0), 0, ME)
    append(appender, columns(0, 50, size=300), most=1_000)
    assert values_of(topics, topic) == list(range(50))
    with pytest.raises(Unwritten, match="does not accept row 51: "):
        append(appender, columns(50, 1, size=3_000))


def test_deleted_rows(topics: Topics, cluster: Cluster) -> None:
    """
    If the log begins after the backfill's start, nobody can know which rows were there.
    """
    topic = topics.make(partitions=1)
    append(Appender(cluster, TopicPartition(topic, 0), 0, ME), columns(0, 10))
    topics.delete_records(topic, 0, 10)
    with pytest.raises(Unreadable, match=f"{topic}-0 begins with offset 10 now, but the backfill began at 0"):
        Appender(cluster, TopicPartition(topic, 0), 0, ME)


def test_damaged_rows(tmp_path: Path) -> None:
    """
    Rows that cannot be read may be there: appending them again could double them.
    """
    partition = TopicPartition("sales", 0)
    with Kafka(folder=tmp_path, retention_ms=-1) as kafka:
        with Cluster([Address.parse(kafka.bootstrap)], 10) as cluster:
            create_topic(cluster, partition.topic, 1, 1, {})
            append(Appender(cluster, partition, 0, ME), columns(0, 30))
        kafka.stop()
        [log] = tmp_path.glob(f"*/{partition}/{0:020d}.log")
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1  # in the second of three batches
        log.write_bytes(data)
        kafka.start()
        with (
            Cluster([Address.parse(kafka.bootstrap)], 10) as cluster,
            pytest.raises(KafkaError, match="sales-0: the records at offset 10 are damaged"),
        ):
            Appender(cluster, partition, 0, ME)


def test_a_task_that_fails_in_the_middle(topics: Topics, cluster: Cluster) -> None:
    """
    A failed task is tried again with the same rows of several partitions.
    """
    topic = topics.make()
    starts = dict.fromkeys(range(PARTITIONS), 0)
    sending = BackfillTask((Address.parse(topics.kafka.bootstrap),), 10, topic, starts, ME, Codec.LZ4)

    def batches(fail_at: int | None) -> Iterator[pa.RecordBatch]:
        for number in range(0, 40, 4):
            if number == fail_at:
                raise RuntimeError("cut off")
            indexes = [0 if one < 18 else 1 for one in range(number, number + 4)]
            values = [b"%d" % one for one in range(number, number + 4)]
            names = ["partition", "key", "value", "timestamp"]
            yield pa.RecordBatch.from_arrays(
                [pa.array(indexes, pa.int32()), pa.array([b"k"] * 4), pa.array(values), pa.array([DAY] * 4)], names
            )

    for fail_at in (8, 28, 24):
        with pytest.raises(RuntimeError):
            list(sending(batches(fail_at)))
    [result] = sending(batches(None))
    assert result.to_pydict() == {"partition": [1], "appended": [12]}
    found = held(topics, topic)
    assert [int(one.value) for index in (0, 1) for one in found[index]] == list(range(40))


def test_rows_are_recognized_by_sequence_numbers() -> None:
    """
    Sequence numbers wrap to 0 after 2**31 - 1.
    """
    assert _row_of(5, 5) == 5
    assert _row_of(5, 900) == 5
    assert _row_of(5, SEQUENCES + 5) == SEQUENCES + 5
    assert _row_of(SEQUENCES - 1, 2 * SEQUENCES - 2) == SEQUENCES - 1


KILLS = 2


def test_a_killed_process(topics: Topics, backfill: Run, tmp_path: Path) -> None:
    """
    The sender is killed several times, and in the end each row is there once.
    """
    topic, rows = topics.make(partitions=3), sales(3_000)
    name = write_json("sales.json", rows)
    given = [name, "--topic", topic, "--key", "who", "--order-by", "number"]
    consumer = Consumer({"bootstrap.servers": topics.kafka.bootstrap, "group.id": "watching", "fetch.wait.max.ms": 50})
    consumer.assign([ClientPartition(topic, index, 0) for index in range(3)])
    seen = 0
    for kill in range(1, KILLS + 1):
        command = [sys.executable, "-c", RUN, "backfill", *given, "--rate", "300", "--master", "local[2]"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while seen < 400 * kill:
                found = consumer.consume(50, 120)
                assert found, "no response"
                seen += len(found)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    consumer.close()
    assert seen < len(rows)
    backfill(*given)
    assert_each_once(topics, topic, rows, lambda row: row["number"], 3)


RUN = """
import sys
from kgateway.cli.main import lines_of
print(*lines_of(["spark", *sys.argv[1:]]), sep="\\n")
"""


# Mistakes.


def test_what_a_second_run_may_not_change(topics: Topics, backfill: Run, refused: Callable[..., str]) -> None:
    """
    A second run needs the same files, options and topic.
    """
    topic = topics.make()
    name = write_json("sales.json", sales(50))
    given = name, "--topic", topic, "--key", "who"
    backfill(*given)
    start, end = f"cannot continue from backfill-{topic}.json: ", ". Use another --state to start again"
    assert refused(name, "--topic", topic, "--key", "number") == f"{start}--key was who, but is number now{end}"
    assert refused(*given, "--order-by", "at") == f"{start}--order-by was not given, but is at now{end}"
    write_json("more.json", sales(5, first=90))
    assert refused(*given, "more.json").endswith(f"/more.json is new{end}")
    write_json("sales.json", sales(51))
    assert refused(*given).endswith(f"/sales.json has changed since{end}")
    write_json("sales.json", sales(50))
    other = topics.make()
    state = f"backfill-{topic}.json"
    assert "not of" in refused(name, "--topic", other, "--key", "who", "--state", state)
    topics.admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    assert f"{topic} had 2 partitions, but has 5 now" in refused(*given)
    topics.delete(topic)
    topics.make(name=topic)
    assert f"the topic {topic} was recreated since" in refused(*given)
    assert not held(topics, topic)


def test_mistakes_in_names(topics: Topics, refused: Callable[..., str]) -> None:
    """
    Errors suggest similar names of topics, files and columns, and nothing starts.
    """
    topic = topics.make(name="backfilled-sales")
    name = write_json("sales.json", sales(5))
    assert refused(name, "--topic", "backfilled-sale") == (
        "there is no topic backfilled-sale; did you mean backfilled-sales?; `kgateway topics create` creates it"
    )
    assert refused("sale.json", "--topic", topic) == "there is no file sale.json; did you mean sales.json?"
    assert refused(name, "--topic", topic, "--key", "whom") == (
        "there is no column whom in these files; did you mean who?"
    )
    assert refused(name, "--topic", topic, "--value", "xyz") == (
        "there is no column xyz in these files; choose from at, note, number, who"
    )
    Path("nothing").mkdir()
    assert refused("nothing", "--topic", topic) == "there are no files in nothing"
    Path("sales.txt").write_text("x")
    assert "(others): name it with --format" in refused("sales.txt", "--topic", topic)
    assert not list(Path().glob("backfill-*"))


def test_invalid_rows(topics: Topics, refused: Callable[..., str]) -> None:
    """
    Files of another format, numbers as text, and invalid times are refused.
    """
    topic = topics.make()
    Path("broken.parquet").write_bytes(b"no Parquet at all, but of some length")
    assert "broken.parquet" in refused("broken.parquet", "--topic", topic)
    Path("broken.json").write_text('{"a": 1}\n{"a": \n')
    assert "alformed" in refused("broken.json", "--topic", topic)
    name = write_csv("sales.csv", sales(20))
    assert refused(name, "--topic", topic, "--order-by", "number") == (
        "the numbers in number are strings, which sort 10 before 9: name the types of the columns, as in --schema 'id "
        "long, number long'"
    )
    assert refused(name, "--topic", topic, "--timestamp", "who") == "20 rows have no time in the column who"
    rows = pa.table({"a": [True]})
    pq.write_table(rows, "flags.parquet")
    assert refused("flags.parquet", "--topic", topic, "--timestamp", "a") == (
        "the column a is of type boolean, which is not a time"
    )
    Path("nothing.csv").write_text("a\n")
    assert refused("nothing.csv", "--topic", topic) == "there are no rows in nothing.csv"
    assert not list(Path().glob("backfill-*"))
    assert not held(topics, topic)


def test_failures_during_a_send(topics: Topics, refused: Callable[..., str]) -> None:
    """
    A row that the topic refuses and a file whose damage shows late both fail the job.
    """
    topic = "takes-small-rows"
    topics.admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})])[topic].result()
    name = write_json("large.json", [{"a": "x" * 10}, {"a": "x" * 5_000}])
    said = refused(name, "--topic", topic)
    assert said.startswith(f"{topic}-0 does not accept row 2: ")
    assert "Traceback" not in said
    pq.write_table(pa.table({"a": range(50_000), "b": [random.Random(1).randbytes(20)] * 50_000}), "damaged.parquet")
    data = Path("damaged.parquet").read_bytes()
    Path("damaged.parquet").write_bytes(data[:5_000] + bytes(300) + data[5_300:])
    said = refused("damaged.parquet", "--topic", topic, "--key", "b", "--value", "a", "--state", "other.json")
    assert "damaged.parquet" in said
    assert len(held(topics, topic)[0]) == 1


def test_rows_that_would_be_deleted_at_once(topics: Topics, refused: Callable[..., str], backfill: Run) -> None:
    """
    Rows beyond the retention are refused, unless they get the time of their arrival.
    """
    topic = "keeps-a-day"
    topics.admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "86400000"})])[topic].result()
    name = write_json("old.json", [{"at": "2020-01-01T00:00:00Z"}])
    said = refused(name, "--topic", topic, "--timestamp", "at")
    assert "days old, and keeps-a-day keeps records for 1 days (retention.ms=86400000)" in said
    backfill(name, "--topic", topic)
    assert len(held(topics, topic)[0]) == 1


def test_an_invalid_state_file(tmp_path: Path) -> None:
    """
    A damaged state file is an error, and a missing one is no state.
    """
    assert load_state(tmp_path / "none.json") is None
    for text in ("no JSON", "[]", '{"version": 9}', '{"version": 1}'):
        (tmp_path / "state.json").write_text(text)
        with pytest.raises(Unreadable, match="is not the state of a backfill"):
            load_state(tmp_path / "state.json")


# Columns.


def test_partitions_are_those_of_single_keys() -> None:
    """
    Vectorized hashes equal those of single keys, of all lengths, with nulls and slices.
    """
    chance = random.Random(1)
    keys = [None if one % 11 == 0 else chance.randbytes(one % 23) for one in range(3_000)]
    column = pa.array(keys, pa.binary())
    for start, end in ((0, 3_000), (13, 900), (5, 6), (0, 0)):
        wanted = [partition_of(key or b"", 7) for key in keys[start:end]]
        assert partitions_of(column.slice(start, end - start), 7).tolist() == wanted


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_batches_are_those_of_the_builder(codec: Codec) -> None:
    """
    Batches equal the builder's byte for byte, with nulls, long and short values, and times that go back.
    """
    chance = random.Random(2)
    keys = [None if one % 7 == 0 else chance.randbytes(one % 70) for one in range(500)]
    values = [None if one % 5 == 0 else chance.randbytes(one * one % 9_000) for one in range(500)]
    times = [DAY + chance.randrange(-(10**9), 10**9) for _ in range(500)]
    rows = Columns(pa.array(keys, pa.large_binary()), pa.array(values, pa.large_binary()), np.array(times))
    for start, end in ((0, 500), (3, 4), (100, 300)):
        builder = BatchBuilder(codec=codec, producer_id=9, producer_epoch=2, base_sequence=77)
        for number in range(start, end):
            builder.append(keys[number], values[number], timestamp=times[number])
        assert batch_of(rows.cut(start, end), ProducerEpoch(9, 2), 77, codec) == builder.build()


def test_pieces_fill_the_limit() -> None:
    """
    A piece fits the limit, but has at least one row.
    """
    rows = columns(0, 100, size=98)
    assert rows.fitting(1) == 1
    assert 7 <= rows.fitting(1_000) <= 8
    assert rows.fitting(1 << 20) == 100


def test_the_rate_is_limited() -> None:
    """
    The rate is limited over time, and rows are not sent all at once.
    """
    now, rests = [100.0], list[float]()

    def rest(seconds: float) -> None:
        rests.append(seconds)
        now[0] += seconds

    pace = Pace(50, lambda: now[0], rest)
    assert pace.most == 5
    for _ in range(4):
        pace.count(5)
        now[0] += 0.03
    assert rests == pytest.approx([0.1, 0.07, 0.07, 0.07])
    unlimited = Pace(None, lambda: now[0], rest)
    unlimited.count(1_000)
    assert len(rests) == 4
    assert unlimited.most > 1_000_000
