"""
Topics of SeaweedMQ on a real cluster, read straight from its filer: the same rows as a gateway shows, in all formats,
whoever has written them; and folders of logs in the filer.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from kgateway.broker.seaweed.protos.schema_pb2 import STRING, Field, RecordType, RecordValue, Type
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF, topic_folder
from kgateway.client.offsets import Extent
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.http.client import Access, url_path
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.options import READ, Options
from kgateway.spark.query import location_of
from kgateway.spark.readers.range_reader import ReadSpec, read_range
from kgateway.spark.seaweed.logs import FilerLogs
from kgateway.spark.sql.statement import analyzed
from kgateway.spark.sql.tables import Tables
from kgateway.testing.kafka import Kafka
from kgateway.topic_partition import TopicPartition
from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import mended as mended
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.go_gateway import GoGateway
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.folders import ORDERS, batch, clean, offsets_in, segment
from tests.spark.gateway import Row, Topics, refused

SOON = Access(answer_s=5, patience_s=0.3)
MORE: tuple[dict[str, Any], ...] = (
    {"compression.type": "zstd"},
    {"enable.idempotence": True, "compression.type": "lz4"},
    {"batch.size": 1},
)
_TRIES, _PATIENCE_S = 20, 90
NAMES = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType", "headers")


@pytest.fixture(scope="module")
def alien(cluster: DevCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """
    Topics that others created and wrote before any gateway of ours saw them: the Go gateway, and a client of
    SeaweedMQ, without columns and with some.
    """
    by_go, columns = f"go-{uuid4().hex}", RecordType(fields=[Field(name="who", type=Type(scalar_type=STRING))])
    with GoGateway(cluster, tmp_path_factory.mktemp("go")) as gateway:
        admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
        admin.create_topics([NewTopic(by_go, 2, 1)])[by_go].result()
        _fill(
            gateway.bootstrap, by_go, [{"key": b"k%d" % n, "value": b"v%d" % n, "partition": n % 2} for n in range(50)]
        )
    bare, columned = ForeignTopic(cluster), ForeignTopic(cluster, columns)
    for number in range(3):  # one file each
        bare.publish([Message(b"", b"value %d" % number), Message(b"key", b""), *[Message(b"k", b"v" * 300)] * 20])
        values = [RecordValue() for _ in range(5)]
        for value in values:
            value.fields["who"].string_value = "me"
        columned.publish([Message(b"k", value.SerializeToString()) for value in values] + [Message(b"k", b"\xff")])
    return {"go": by_go, "bare": bare.name, "columns": columned.name}


@pytest.fixture(scope="module")
def kafka(cluster: DevCluster, alien: dict[str, str]) -> Iterator[Kafka]:
    """
    A gateway of ours in front of the cluster.
    """
    with Kafka("--broker", f"seaweedmq:{','.join(cluster.masters)}", patience_s=_PATIENCE_S) as kafka:
        yield kafka
        assert "Traceback" not in kafka.log, kafka.log


@pytest.fixture
def there(kafka: Kafka, spark: Any) -> Topics:
    """
    Topics of the gateway, for Spark to read.
    """
    return Topics(kafka, spark)


@pytest.fixture
def filer(cluster: DevCluster) -> Iterator[FilerLogs]:
    with closing(FilerLogs(url_path(f"http://{cluster.filer}"), SOON)) as logs:
        yield logs


def _fill(bootstrap: str, topic: str, rows: list[Row], **settings: Any) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    for row in rows:
        producer.produce(topic, **row)
    assert producer.flush(60) == 0


def make(there: Topics, form: str, partitions: int = 2) -> str:
    """
    Create a topic of this format whose acknowledged records are in files.
    """
    name = f"{form}-{uuid4().hex}"
    config = {"seaweedmq.format": form, "seaweedmq.acks": "flushed", "retention.ms": "-1", **FORMATS[form].needs}
    there.admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result()
    return name


def records(form: str, first: int, count: int, partitions: int) -> list[Row]:
    """
    Records of all kinds that the format can store.
    """
    rows: list[Row] = []
    for number in range(first, first + count):
        row: Row = {"value": b"%d" % number * (1 + number % 7), "partition": number % partitions}
        if number % 3:
            row["key"] = b"k%d" % number
        if form != "plain":
            row["timestamp"] = 1_000_000 + number * 7
            if number % 5 == 0:
                row |= {"value": None} | ({"key": b""} if number % 2 else {})
            if number % 4 == 0:
                row["headers"] = [("h", b"%d" % number), ("i", None), ("h", b"")]
        rows.append(row)
    return rows


def rows_of(there: Topics, *, names: Sequence[str] = NAMES, **options: str) -> list[tuple[Any, ...]]:
    """
    All rows of a query, in order.
    """
    reader = there.spark.read.format("kgateway").options(includeHeaders="true", **options)
    rows = reader.load().orderBy("topic", "partition", "offset").collect()
    return [tuple(row[name] for name in names) for row in rows]


def both(
    there: Topics, cluster: DevCluster, topic: str, *, names: Sequence[str] = NAMES, **options: str
) -> list[tuple[Any, ...]]:
    """
    The rows, after checking that filer and gateway agree.
    """
    servers = {"kafka.bootstrap.servers": there.kafka.bootstrap}
    through = rows_of(there, names=names, subscribe=topic, **servers, **options)
    straight = rows_of(there, names=names, subscribe=topic, **{"kgateway.filer": cluster.filer}, **options)
    assert straight == through
    return straight


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_those_of_the_gateway(there: Topics, cluster: DevCluster, form: str) -> None:
    """
    Rows of all formats agree: over many files, after the topic has grown and its first records were deleted, in many
    tasks, from an offset or a time on; also when the gateway has nothing of them in memory any more.
    """
    topic = make(there, form)
    for number, settings in enumerate(MORE):
        _fill(there.kafka.bootstrap, topic, records(form, number * 100, 100, 2), **settings)
    there.admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    _fill(there.kafka.bootstrap, topic, records(form, 300, 90, 3))
    # The gateway dates what it has just taken by its own clock if a message has only SeaweedMQ's time.
    names = [name for name in NAMES if form != "plain" or name != "timestamp"]
    rows = both(there, cluster, topic, names=names)
    assert [[row[1] for row in rows].count(index) for index in range(3)] == [180, 180, 30]
    there.delete_records(topic, 0, 20)
    there.kafka.stop(_PATIENCE_S)
    there.kafka.start()
    rows = both(there, cluster, topic, minPartitions="9")
    assert len(rows) == 370
    some, last = (json.dumps({topic: each}) for each in ({"0": 60, "1": -2, "2": 7}, {"0": 170, "1": 30, "2": -1}))
    assert len(both(there, cluster, topic, startingOffsets=some, endingOffsets=last)) == 110 + 30 + 23
    time = sorted(row[5] for row in rows)[150].replace(tzinfo=UTC).timestamp()
    assert 0 < len(both(there, cluster, topic, startingTimestamp=str(int(time * 1_000)))) < 370


@pytest.mark.parametrize(("which", "count"), [("go", 50), ("bare", 66), ("columns", 18)])
def test_rows_that_others_wrote(
    there: Topics, cluster: DevCluster, alien: dict[str, str], filer: FilerLogs, which: str, count: int
) -> None:
    """
    Messages of the Go gateway and of SeaweedMQ's clients have the rows that the gateway shows.
    """
    assert len(both(there, cluster, alien[which])) == count


def test_topics_that_no_gateway_has_seen(cluster: DevCluster) -> None:
    """
    These topics have the rows that a gateway would show, and nothing is written beside them.
    """
    namespace = f"test-{uuid4().hex}"  # that no gateway knows
    topic = ForeignTopic(cluster, namespace=namespace)
    topic.publish([Message(b"k", b"v%d" % number) for number in range(4)])
    place = TopicPartition(topic.name, 0)
    with closing(FilerLogs(url_path(f"http://{cluster.filer}"), SOON, namespace)) as filer:
        assert filer.partitions() == {topic.name: [place]}
        assert filer.extents([place]) == {place: Extent(0, 4)}
        found = read_range(filer.windows, OffsetRange(place, 1, 4), ReadSpec(("offset", "key", "value")))
        rows = [row for each in found for row in each.to_pylist()]
    assert rows == [{"offset": n, "key": b"k", "value": b"v%d" % n} for n in (1, 2, 3)]
    folder = topic_folder(topic.name, namespace)
    assert {entry.name for entry in topic.entries(folder) if not entry.is_directory} == {TOPIC_CONF}


def test_an_empty_topic(there: Topics, cluster: DevCluster, filer: FilerLogs) -> None:
    """
    An empty topic has partitions and no rows.
    """
    topic = make(there, "record")
    assert both(there, cluster, topic) == []
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert filer.extents(places) == dict.fromkeys(places, Extent(0, 0))


def test_a_stream_follows_the_files(there: Topics, cluster: DevCluster, tmp_path: Path) -> None:
    """
    Each record is read once, even if the query is restarted.
    """
    topic = make(there, "batch")
    stream = there.spark.readStream.format("kgateway").options(
        **{"kgateway.filer": cluster.filer, "subscribe": topic, "startingOffsets": "earliest"}
    )
    for first in (0, 40):
        _fill(there.kafka.bootstrap, topic, records("batch", first, 40, 2))
        query = (
            stream.load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination(60)
        found = there.spark.read.parquet(str(tmp_path / "rows")).select("partition", "offset").collect()
        assert sorted(map(tuple, found)) == [(at, n) for at in (0, 1) for n in range((first + 40) // 2)]


def test_topics_by_a_pattern_and_names_like_one(there: Topics, cluster: DevCluster) -> None:
    """
    The error for a missing topic suggests similar names.
    """
    topic = make(there, "plain")
    options = {"kgateway.filer": f"http://{cluster.filer}"}
    assert rows_of(there, subscribePattern=f"{topic[:-1]}.", **options) == []
    with refused(f"there is no topic or partition {topic[:-1]} in the filer http://{cluster.filer}; there is {topic}"):
        rows_of(there, subscribe=topic[:-1], **options)


def test_a_server_that_is_no_filer(cluster: DevCluster) -> None:
    """
    A master is no filer; an unreachable server is an error after a time.
    """
    with (
        closing(FilerLogs(url_path(f"http://{cluster.masters[0]}"), SOON)) as master,
        pytest.raises(Unreadable, match=r"/topics/kafka"),
    ):
        master.partitions()


@pytest.mark.parametrize("given", ["host", "http://host:8888/topics", "http://host", "host:port", "ftp://host:1"])
def test_wrong_addresses(given: str) -> None:
    """
    Wrong addresses, and a server beside the filer, are refused before anything is asked.
    """
    with pytest.raises(WrongOption, match="it must be HOST:PORT of a filer's HTTP, or http://HOST:PORT"):
        location_of(Options({"kgateway.filer": given}, READ))
    with pytest.raises(WrongOption, match=r"kgateway.filer is read without any Kafka server"):
        location_of(Options({"kgateway.filer": "host:1", "kafka.bootstrap.servers": "host:1"}, READ))


def test_parquet_files_of_seaweedfs(there: Topics, cluster: DevCluster) -> None:
    """
    On request they are read at their offsets in place of log files.
    """
    topic, rows = make(there, "record", 1), records("record", 0, 60, 1)
    _fill(there.kafka.bootstrap, topic, rows)
    straight = {"kgateway.filer": cluster.filer, "subscribe": topic}
    assert rows_of(there, **straight, **{"kgateway.filer.files": "parquet"}) == []
    for _ in range(_TRIES):  # files younger than a second are ignored
        _shell(cluster, f"lock\nmq.topic.compact -namespace kafka -topic {topic} -timeAgo 1ms\nunlock\n")
        found = rows_of(there, **straight, **{"kgateway.filer.files": "parquet"})
        if found:
            break
    # SeaweedFS's Parquet does not distinguish null from empty.
    wanted = [(*row[:3], row[3] or None, row[4] or b"", *row[5:]) for row in rows_of(there, **straight)]
    assert {row[3] is None for row in wanted} == {bool(row[7]) for row in wanted} == {True, False}
    assert found == wanted
    some = {"startingOffsets": json.dumps({topic: {"0": 10}}), "endingOffsets": json.dumps({topic: {"0": 30}})}
    assert rows_of(there, **straight, **some, **{"kgateway.filer.files": "parquet", "minPartitions": "3"}) == [
        row for row in wanted if 10 <= row[2] < 30
    ]
    other = make(there, "plain", 1)
    with refused(f"topic {other} is of the format plain, for which SeaweedFS has no Parquet files"):
        rows_of(there, **straight | {"subscribe": other}, **{"kgateway.filer.files": "parquet"})


def _shell(cluster: DevCluster, commands: str) -> None:
    program = [weed_program(), "shell", f"-master={cluster.masters[0]}"]
    run(program, input=f"{commands}exit\n".encode(), capture_output=True, timeout=60, check=True, cwd=cluster.folder)


def test_a_folder_of_logs_in_the_filer(there: Topics, cluster: DevCluster, tmp_path: Path) -> None:
    """
    A data folder in the filer is read like one of this machine.
    """
    for base in (0, 10, 20):
        segment(tmp_path / str(ORDERS), base, [batch(base + at, 2) for at in range(0, 10, 2)])
    here = clean(tmp_path)
    root = f"/tests/{uuid4().hex}"
    for path in sorted(tmp_path.rglob("*")):
        if path.is_file():
            _ask(cluster, "PUT", f"{root}/{path.relative_to(tmp_path)}", path.read_bytes())
    place = location_of(Options({"kgateway.log.folder": f"http://{cluster.filer}{root}"}, READ))
    with closing(place.open(planning=True)) as behind:
        assert offsets_in(behind, 3, 27) == offsets_in(here, 3, 27) == list(range(3, 27))
    straight = rows_of(there, subscribe="orders", **{"kgateway.log.folder": f"http://{cluster.filer}{root}"})
    assert straight == rows_of(there, subscribe="orders", **{"kgateway.log.folder": str(tmp_path)})
    assert len(straight) == 30


def _ask(cluster: DevCluster, verb: str, path: str, body: bytes | None = None) -> None:
    request = Request(f"http://{cluster.filer}{path}", data=body, method=verb)
    request.add_header("Content-Type", "application/octet-stream")
    with urlopen(request, timeout=30) as answer:
        answer.read()


def test_archive_and_sql_need_no_gateway(there: Topics, cluster: DevCluster) -> None:
    """
    An archive in the filer is made from the filer's files, and SQL sees it and later records as one table.
    """
    topic, place = make(there, "record"), {"kgateway.filer": cluster.filer}
    _fill(there.kafka.bootstrap, topic, records("record", 0, 100, 2))
    archives = Archives(there.spark, url_path(f"http://{cluster.filer}/archives"), place)
    manifest = archives.archive(topic)
    assert manifest.ends == {0: 50, 1: 50}
    _fill(there.kafka.bootstrap, topic, records("record", 100, 20, 2))
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.compared) == ([], 100)
    asked = f"SELECT _source, _partition, _offset, _key, _value, _ts_ns FROM `{topic}` ORDER BY 2, 3"
    with (
        Tables(there.spark, place, {topic: archives.folder(topic)}, print) as made,
        analyzed(there.spark, asked, lambda name: made.table(name, {}), made.topics) as result,
    ):
        rows = [tuple(row) for row in result.collect()]
    straight = rows_of(there, names=("partition", "offset", "key", "value", "timestamp"), subscribe=topic, **place)
    assert [row[1:5] for row in rows] == [row[:4] for row in straight]
    assert [row[5] for row in rows] == [int(row[4].timestamp() * 1_000) * 1_000_000 for row in straight]
    assert [row[0] for row in rows] == [*["parquet_archive"] * 50, *["live_log"] * 10] * 2
