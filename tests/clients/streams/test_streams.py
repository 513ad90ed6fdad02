"""
A Kafka Streams application with `exactly_once_v2`, which counts words by way of a repartition topic and keeps its
counts in a changelog, while it and the server are killed: each word of the input is counted once.

KILLS is how often something is killed, TRANSACTION_SEED what follows from chance.
"""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka.servers import free_port
from kgateway.testing.kafka import Kafka
from tests.clients.transactions.numbers import read

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))
INPUT, OUTPUT = "words", "counted"
PARTITIONS, WORDS, WORDS_A_KILL = 3, 50, 400
PATIENCE_S = 120
_SOURCE = Path(__file__).parent / "Counting.java"


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway that is found at the same place after each kill.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{tmp_path / 'data'}", "--log-level", "warn", folder=tmp_path)
    kafka.start()
    yield kafka
    kafka.stop()
    assert "Traceback" not in kafka.log, kafka.log


class Application:
    """
    One process after the other, with the state that the last one has left.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        options = ["-XX:TieredStopAtLevel=1", "-Xmx400m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        jars = f"{os.environ['STREAMS_JARS']}/*"
        settings = [bootstrap, str(folder / "state"), INPUT, OUTPUT]
        self._command = ["java", *options, "-cp", jars, str(_SOURCE), *settings]
        self._log = folder / "application.log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def told(self) -> str:
        """
        What it says of itself.
        """
        return self._log.read_text(errors="replace")[-4_000:]


@pytest.fixture
def application(kafka: Kafka, tmp_path: Path) -> Iterator[Application]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
        made.result(PATIENCE_S)
    application = Application(kafka.bootstrap, tmp_path)
    yield application
    application.kill()


def test_each_word_is_counted_once(kafka: Kafka, application: Application) -> None:
    """
    The counts of a word go up by one, and end with how often it was written.
    """
    chance, written = Random(SEED), Counter[bytes]()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for _ in range(KILLS):
        for _ in range(WORDS_A_KILL):
            word = b"word %d" % chance.randrange(WORDS)
            written[word] += 1
            producer.produce(INPUT, word, partition=chance.randrange(PARTITIONS))
        assert producer.flush(PATIENCE_S) == 0
        sleep(chance.uniform(2, 8))  # at any moment of what they do
        turn = chance.random()
        if turn < 0.6:
            kafka.kill()
            kafka.start()
        if turn > 0.4:
            application.kill()
            application.start()
    deadline = monotonic() + PATIENCE_S
    while (counted := _counted(kafka.bootstrap)) != written:
        assert monotonic() < deadline, f"{written - counted} are not counted\n{application.told()}"
        sleep(0.5)
    print(f"{written.total()} words, {KILLS} kills")


def _counted(bootstrap: str) -> Counter[bytes]:
    last = Counter[bytes]()
    for row in read(bootstrap, OUTPUT, PARTITIONS, "read_committed"):
        assert row.key
        assert int(row.value) == last[row.key] + 1, f"{row} follows {last[row.key]}"
        last[row.key] += 1
    return last
