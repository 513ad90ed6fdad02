"""
Kills the driver, the executors and the server of a Spark application by turns, at random moments.

KILLS is how often, SPARK_KILLS_SEED the seed.
"""

import os
from collections import Counter
from random import Random
from time import sleep

from confluent_kafka import Producer

from kgateway.testing.kafka import Kafka
from tests.spark.kills.driver import Application

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("SPARK_KILLS_SEED", "1"))
SOURCE, SINK, PARTITIONS = "numbers", "copied", 3
PATIENCE_S = 240
_ALL = ("driver", "executor", "server")
_LATEST_S = 1.5  # the longest time between a kill and what happened before it


class Killer:
    """
    Kills each kind once before any of them again.
    """

    def __init__(self, kafka: Kafka, application: Application) -> None:
        self._kafka = kafka
        self._application = application
        self._chance = Random(SEED)
        self._killed = Counter[str]()
        self._turns = list[str]()

    @property
    def count(self) -> int:
        return self._killed.total()

    def strike(self) -> None:
        """
        Kill the next one, if it runs.
        """
        sleep(self._chance.uniform(0, _LATEST_S))  # at a random moment of its work
        self._turns = self._turns or self._chance.sample(_ALL, len(_ALL))
        which = self._turns.pop()
        if which == "driver":
            self._application.kill_driver()
        elif which == "server":
            self._kafka.kill()
            self._kafka.start()
        elif not self._application.kill_executor():
            return
        self._killed[which] += 1

    def __str__(self) -> str:
        return f"killed with seed {SEED}: {dict(self._killed)}"


def fill(bootstrap: str, topic: str, first: int, count: int) -> None:
    """
    Append this many consecutive numbers, some of them with a key.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, b"%d" % (number % 50) if number % 3 else None)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
