"""
A Kafka Streams application with `exactly_once_v2` counts words through a repartition topic, with its counts in a
changelog, while it and the server are killed: each word of the input is counted once.

KILLS is the number of kills, TRANSACTION_SEED the seed of all that is random.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kgateway.testing.kafka import Kafka
from tests.clients.application import Application, kill_some
from tests.clients.transactions.topic_views import read

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))
INPUT, OUTPUT = "words", "counted"
PARTITIONS, WORDS, WORDS_A_KILL = 3, 50, 400
PATIENCE_S = 120
_SOURCE = Path(__file__).parent / "Counting.java"


@pytest.fixture
def application(lasting_kafka: Kafka, tmp_path: Path) -> Iterator[Application]:
    admin = AdminClient({"bootstrap.servers": lasting_kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
        made.result(PATIENCE_S)
    settings = lasting_kafka.bootstrap, str(tmp_path / "state"), INPUT, OUTPUT
    application = Application("STREAMS_JARS", tmp_path, str(_SOURCE), *settings)
    yield application
    application.kill()


def test_each_word_is_counted_once(lasting_kafka: Kafka, application: Application) -> None:
    """
    The counts of a word increase by one, and end with the number of times it was written.
    """
    chance, written = Random(SEED), Counter[bytes]()
    producer = Producer({"bootstrap.servers": lasting_kafka.bootstrap, "log_level": 0})
    for _ in range(KILLS):
        for _ in range(WORDS_A_KILL):
            word = b"word %d" % chance.randrange(WORDS)
            written[word] += 1
            producer.produce(INPUT, word, partition=chance.randrange(PARTITIONS))
        assert producer.flush(PATIENCE_S) == 0
        sleep(chance.uniform(2, 8))  # at a random moment of their work
        kill_some(chance, lasting_kafka, application)
    deadline = monotonic() + PATIENCE_S
    while (counted := _counted(lasting_kafka.bootstrap)) != written:
        assert monotonic() < deadline, f"{written - counted} are not counted\n{application.output()}"
        sleep(0.5)
    print(f"{written.total()} words, {KILLS} kills")


def _counted(bootstrap: str) -> Counter[bytes]:
    last = Counter[bytes]()
    for row in read(bootstrap, OUTPUT, PARTITIONS, "read_committed"):
        assert row.key
        assert int(row.value) == last[row.key] + 1, f"{row} follows {last[row.key]}"
        last[row.key] += 1
    return last
