"""
A log with transactions that Apache Kafka has written, read by Kafka and by a gateway: consumers of committed records
read the same, aborted transactions are the same, and each round of compaction leaves the same.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic, sleep, time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs do not pass them on
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench.kafka.clients import admin_of, create_topic
from bench.kafka.servers import Apache, Gateway, Server
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransaction, checked_aborted
from kgateway.records.batch import batches
from kgateway.records.record import records

TOPIC = "transacted"
_CONFIG = {"segment.ms": "300", "delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0"}
_HOUR_MS = "3600000"
_SEED = 7
_TURNS = 400
_PATIENCE_S = 60
_ROUNDS = 4

Row = tuple[int | None, bytes | None, bytes | None]  # offset, key, value


@dataclass(frozen=True, slots=True, order=True)
class Left:
    """
    The remains of a batch, with the offsets and keys of its records.
    """

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    is_control: bool
    has_horizon: bool
    rows: tuple[tuple[int, bytes | None], ...]


def _write(server: Server) -> None:
    """
    Write overlapping transactions of some producers that are committed or aborted and repeat few keys, and records
    outside of transactions.
    """
    chance, plain = Random(_SEED), Producer({"bootstrap.servers": server.bootstrap})
    producers = [
        Producer({"bootstrap.servers": server.bootstrap, "transactional.id": f"writer {number}", "linger.ms": 0})
        for number in range(3)
    ]
    began = dict.fromkeys(producers, False)
    for producer in producers:
        producer.init_transactions(_PATIENCE_S)
    for turn in range(_TURNS):
        if turn == _TURNS // 2:
            _begin_last_segment(server)
        producer = chance.choice(producers)
        if chance.random() < 0.25 and began[producer]:
            end = producer.commit_transaction if chance.random() < 0.5 else producer.abort_transaction
            end(_PATIENCE_S)
            began[producer] = False
            continue
        if not began[producer]:
            producer.begin_transaction()
            began[producer] = True
        writer = plain if chance.random() < 0.2 else producer
        writer.produce(TOPIC, b"%d" % turn, b"%d" % chance.randrange(40), partition=0)
        assert writer.flush(_PATIENCE_S) == 0
    for producer, is_open in began.items():
        if is_open:
            producer.abort_transaction(_PATIENCE_S)
    _put(server, b"end", 0)


def _begin_last_segment(server: Server) -> None:
    """
    Only the second round of compaction reads what is written from now on. Kafka keeps the last batch before the last
    segment, even if it is empty, so one is written.
    """
    _put(server, b"last", 0)
    _put(server, b"behind", 2)
    _set(server, segment_ms=_HOUR_MS)


def _put(server: Server, key: bytes, later: int) -> None:
    """
    Append a record with a timestamp this many seconds later, which begins a segment.
    """
    producer = Producer({"bootstrap.servers": server.bootstrap})
    producer.produce(TOPIC, b"value", key, partition=0, timestamp=(int(time()) + later) * 1_000)
    assert producer.flush(_PATIENCE_S) == 0


def _committed(server: Server) -> list[Row]:
    """
    The records that a consumer of committed records reads.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    found = list[Row]()
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while True:
            message = consumer.poll(_PATIENCE_S)
            assert message, "nothing comes, and no end"
            if message.error():
                return found
            found.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()


def _folder(server: Server) -> Path:
    return server.data / f"{TOPIC}-0"


def _told(folder: Path) -> list[AbortedTransaction]:
    """
    The aborted transactions that the files list.
    """
    files = sorted(folder.glob(f"*{ABORTED_INDEX}"))
    return [one for path in files for one in checked_aborted(path.read_bytes(), int(path.stem)) or ()]


def _left(server: Server) -> list[Left]:
    """
    The remaining batches, except for those that stand for nothing.
    """
    data = b"".join(path.read_bytes() for path in sorted(_folder(server).glob("*.log")))
    return [
        Left(
            batch.header.base_offset,
            batch.header.last_offset,
            batch.header.producer_id,
            batch.header.producer_epoch,
            batch.header.is_control,
            batch.header.has_delete_horizon,
            tuple((record.offset, record.key) for record in records(batch)),
        )
        for batch in batches(data, cut_tail=True)
        if batch.header.records_count or batch.header.producer_id >= 0
    ]


def _set(server: Server, **values: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=changes)
    admin = admin_of(server)
    [done] = admin.incremental_alter_configs([resource]).values()
    done.result(_PATIENCE_S)


def _is_clean(server: Server) -> bool:
    last = max(int(path.stem) for path in _folder(server).glob("*.log"))
    try:
        return f"{TOPIC} 0 {last}" in (server.data / "cleaner-offset-checkpoint").read_text().split("\n")
    except FileNotFoundError:
        return False


def _round(server: Server, number: int) -> None:
    """
    Append a record, which begins a segment; then compact everything before it.
    """
    _put(server, b"round %d" % number, 100 * (number + 1))
    _wait_until_clean(server)


def _wait_until_clean(server: Server) -> None:
    deadline = monotonic() + _PATIENCE_S
    while not _is_clean(server):
        assert monotonic() < deadline, f"{server.name} does not compact"
        sleep(0.05)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """
    Kafka with such a log, and a gateway with a copy of its segments.
    """
    folder = tmp_path_factory.mktemp("transacted")
    kafka, gateway = Apache(folder / "kafka"), Gateway(folder / "kgateway", "log:{data}")
    with ExitStack() as stack:
        for server in (kafka, gateway):
            stack.callback(server.stop)
            server.start()
            create_topic(server, TOPIC, 1, _CONFIG)
        _write(kafka)
        gateway.stop()
        for path in _folder(gateway).glob("0*"):
            path.unlink()
        for path in _folder(kafka).glob("*.log"):
            shutil.copy(path, _folder(gateway))
        gateway.start()
        yield kafka, gateway
        assert "Traceback" not in gateway.log, gateway.log


def test_committed_records(servers: tuple[Server, Server]) -> None:
    """
    Consumers read the same from both, and many records are left out.
    """
    kafka, gateway = map(_committed, servers)
    assert kafka == gateway
    assert 0 < len(kafka) < _TURNS * 3 / 4 - 50


def test_compaction(servers: tuple[Server, Server]) -> None:
    """
    Aborted records are removed, then markers of which nothing is left, except for what describes a producer; at no
    time do consumers see a difference between the two.
    """
    kafka, gateway = servers
    for server in servers:
        _set(server, cleanup_policy="compact", segment_ms="1")
        _wait_until_clean(server)
    seen = list[int]()
    for number in range(_ROUNDS):
        for server in servers:
            _round(server, number)
        assert _left(kafka) == _left(gateway)
        assert _told(_folder(kafka)) == _told(_folder(gateway))
        assert _committed(kafka) == _committed(gateway)
        seen.append(sum(left.is_control for left in _left(gateway)))
    assert seen[0] > seen[-1] > 0
