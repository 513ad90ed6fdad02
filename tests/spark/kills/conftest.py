"""
Kills take minutes, so these tests run only when they are named, as in `tox -e spark-kills`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka.servers import free_port
from kgateway.testing.kafka import Kafka
from tests.spark.kills.killer import PARTITIONS, PATIENCE_S, SINK, SOURCE

collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway that keeps its address after each kill, with two topics.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{tmp_path / 'data'}", "--log-level", "warn", folder=tmp_path)
    kafka.start()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (SOURCE, SINK)]).values():
        made.result(PATIENCE_S)
    yield kafka
    kafka.stop()
    assert "Traceback" not in kafka.log, kafka.log
