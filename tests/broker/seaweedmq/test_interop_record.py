"""
Columns of the format `record` as SeaweedMQ's own tool reads them: its shell makes Parquet files of a topic, by the
column types of the topic. test_weed_sql.py tests what its SQL makes of them.
"""

from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from time import monotonic, sleep
from typing import Any
from urllib.request import urlopen

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from kgateway.broker.seaweedmq.formats.record import headers_text
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from tests.broker.seaweedmq.weed_files import files
from tests.clients.client import Sending
from tests.clients.confluent_client import Confluent

parquet = pytest.importorskip("pyarrow.parquet")

_SECONDS = 60
_TIMESTAMP = 1_700_000_000_000
ROWS = [
    Record(0, _TIMESTAMP, b"k0", b"v0", (Header("h", b"1"), Header("none", None))),
    Record(1, _TIMESTAMP + 1, b"k1", b"\xff\x00binary"),
    Record(2, _TIMESTAMP - 5, b"k2", "µ".encode(), (Header("h", b""),)),
    Record(3, _TIMESTAMP + 2, None, b"no key"),
    Record(4, _TIMESTAMP + 3, b"", b"an empty key"),
    Record(5, _TIMESTAMP + 4, b"k5", None),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """
    A cluster of this module.
    """
    cluster = DevCluster(tmp_path_factory.mktemp("weed"))
    try:
        yield cluster.start()
    finally:
        cluster.kill()


def compacted(cluster: DevCluster, topic: str, to: Path) -> list[dict[str, Any]]:
    """
    The rows that the shell of SeaweedFS makes of the topic; it skips messages younger than a second.
    """
    commands = f"lock\nmq.topic.compact -namespace kafka -topic {topic} -timeAgo 1ms\nunlock\nexit\n"
    program = [weed_program(), "shell", f"-master={cluster.masters[0]}"]
    deadline = monotonic() + _SECONDS
    while True:
        run(program, input=commands.encode(), capture_output=True, timeout=_SECONDS, check=True, cwd=cluster.folder)
        made = [path for path in files(cluster, f"/topics/kafka/{topic}") if path.endswith(".parquet")]
        if made:
            break
        assert monotonic() < deadline
        sleep(0.5)
    (path,) = made
    with urlopen(f"http://{cluster.filer}{path}", timeout=_SECONDS) as answer:
        (to / "rows.parquet").write_bytes(answer.read())
    found: list[dict[str, Any]] = parquet.read_table(to / "rows.parquet").to_pylist()
    return found


def test_columns_come_out_right(shared: DevCluster, tmp_path: Path) -> None:
    """
    Keys, values, headers, timestamps, partitions, offsets and producers are right, also in records without a key. Null
    is empty in Parquet.
    """
    with Kafka("--broker", f"seaweedmq:{','.join(shared.masters)}") as kafka:
        client = Confluent(kafka.bootstrap)
        client.create_topic("columns", 1, {"seaweedmq.format": "record"})
        client.send("columns", ROWS, 0, Sending(idempotent=True))
    found = compacted(shared, "columns", tmp_path)
    columns = ("_kafka_offset", "_kafka_timestamp", "key", "value")
    assert [Record(*(row[column] for column in columns)) for row in found] == [
        record._replace(key=record.key or b"", value=record.value or b"", headers=()) for record in ROWS
    ]
    texts = [headers_text(record.headers).encode() if record.headers else b"" for record in ROWS]
    assert [row["_kafka_headers"] for row in found] == texts
    assert {row["_kafka_partition"] for row in found} == {0}
    assert [row["_offset"] for row in found] == list(range(len(ROWS)))
    assert all(len(row["_kafka_producer"]) == 22 for row in found)
    assert [row["_key"] for row in found] == [row["key"] or b"(none)" for row in found]
