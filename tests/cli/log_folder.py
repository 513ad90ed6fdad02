"""
A data folder written by an embedded log, and the end of a `kgateway log` command.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.records.batch import read_batch
from kgateway.records.builder import BatchBuilder
from tests.broker.log.log_brokers import START_MS, log_broker

SIZE = 60_000  # size of a value; 17 batches of it fill a segment
BATCH = 60_078  # size of its batch
COUNT = 40
FIRST, SECOND, LAST = (f"orders-0/{base:020d}" for base in (0, 17, 34))


def make(data: Path, *, last_producer: int = 0) -> None:
    """
    Write a closed folder whose topic has batches in its first partition only.
    """
    broker = log_broker(data)
    done(broker.start())
    config = TopicConfig.of({"segment.bytes": str(1 << 20)})
    topic = done(broker.create_topic(NewTopic("orders", 2, config)))
    done(broker.new_producer_id())
    for number in range(COUNT):
        builder = BatchBuilder(producer_id=last_producer, producer_epoch=0, base_sequence=number)
        builder.append(b"key %02d" % number, bytes(SIZE), timestamp=START_MS + 1000 * number)
        broker.partition(topic.id, 0).append(read_batch(builder.build()), Origin.CLIENT)
    broker.partition(topic.id, 1)
    done(broker.stop())


def done(work: "Deferred[Any]") -> Any:
    """
    The result of a Deferred that has fired.
    """
    results: list[Any] = []
    work.addCallback(results.append)
    return results[0]


class Ended(NamedTuple):
    """
    The exit code and output of a command.
    """

    code: object
    lines: list[str]
    errors: str


Run = Callable[..., Ended]


def change(path: Path, position: int, data: bytes) -> None:
    """
    Overwrite bytes of a file.
    """
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)
