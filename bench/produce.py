"""
How fast one producer is served: `python -m bench.produce`.

The producer is confluent-kafka. With one record a request the server's work for a request is what counts, so no request
waits for another, unless it says five in flight; with batches of 1 MB what counts is how often bytes are touched.
"""

from functools import partial
from typing import Any

from confluent_kafka import Producer

from bench.work import HEADING, costs, row
from kgateway.testing.kafka import Kafka

TOPIC = "measured"
REQUESTS = 100_000
SMALL_BYTES = 100
RECORDS = 400_000
RECORD_BYTES = 1_000
PARTITIONS = 4
FLUSH_S = 120
ONE_RECORD: dict[str, Any] = {"linger.ms": 0, "batch.num.messages": 1}
LARGE: dict[str, Any] = {
    "linger.ms": 5,
    "batch.size": 1 << 20,
    "batch.num.messages": 100_000,
    "message.max.bytes": 1_048_588,
}


def producer(bootstrap: str, topic: str = TOPIC, **settings: Any) -> Producer:
    """
    A producer that has its topic's metadata.
    """
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 0,
            **settings,
        }
    )
    made.produce(topic, b"first", partition=0)
    assert made.flush(FLUSH_S) == 0
    return made


def one_record(kafka: Kafka, **settings: Any) -> Producer:
    """
    A producer that sends each record in its own request.
    """
    return producer(kafka.bootstrap, **ONE_RECORD, **settings)


def send(producer: Producer, count: int, value: bytes, partitions: int) -> None:
    """
    Send this many records, and wait for their acknowledgements.
    """
    for number in range(count):
        producer.produce(TOPIC, value, partition=number % partitions)
    assert producer.flush(FLUSH_S) == 0


def fill(kafka: Kafka, count: int = RECORDS) -> None:
    """
    Fill a topic with large batches, for reading.
    """
    send(producer(kafka.bootstrap, **LARGE), count, bytes(RECORD_BYTES), PARTITIONS)


def main() -> None:
    print(HEADING)
    for name, settings in (("", {}), (", five in flight", {"max.in.flight": 5})):
        with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
            found = costs(kafka, partial(send, one_record(kafka, **settings), REQUESTS, bytes(SMALL_BYTES), 1))
            print(row(f"produce one record{name}", "requests/s", REQUESTS, found), flush=True)
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
        found = costs(
            kafka, partial(send, producer(kafka.bootstrap, **LARGE), RECORDS, bytes(RECORD_BYTES), PARTITIONS)
        )
        print(row("produce batches of 1 MB", "MB/s", RECORDS * RECORD_BYTES / 1e6, found), flush=True)


if __name__ == "__main__":
    main()
