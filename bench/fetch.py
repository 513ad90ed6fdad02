"""
How fast one consumer is served: `python -m bench.fetch`.

confluent-kafka makes an object of each record and is the limit itself, so beside it a client asks that only counts
bytes: what it gets is what the server can do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.produce import PARTITIONS, RECORD_BYTES, RECORDS, TOPIC, fill
from bench.work import HEADING, costs, row
from kgateway.messages.fetch import FetchRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import Client

_VERSION = 12
_FETCH_BYTES = 8 << 20
LARGE: dict[str, Any] = {
    # librdkafka pauses for a second when its queue is full, which a fast server fills: that would measure the pauses.
    "queued.min.messages": 10_000_000,
    "queued.max.messages.kbytes": (2 << 20) - 1,
    "fetch.message.max.bytes": _FETCH_BYTES,
}


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    """
    A consumer without assigned partitions.
    """
    usual = {"group.id": "measured", "enable.auto.commit": False, "log_level": 0}
    return Consumer({"bootstrap.servers": bootstrap, **usual, **settings})


def consume(kafka: Kafka) -> None:
    """
    Read all records with confluent-kafka.
    """
    reader = consumer(kafka.bootstrap, **LARGE)
    reader.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    count = 0
    while count < RECORDS:
        count += len(reader.consume(10_000, timeout=30))
    reader.close()


def count_bytes(port: int, topic: str = TOPIC, isolation_level: int = 0) -> int:
    """
    Fetch all batches, and parse only their headers. Returns how many offsets they have.
    """
    offsets = 0
    with Client(port) as client:
        for index in range(PARTITIONS):
            offset = 0
            while True:
                wanted = FetchRequest.Topic.Partition(
                    partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
                )
                asked = FetchRequest(
                    max_wait_ms=0,
                    min_bytes=1,
                    isolation_level=isolation_level,
                    topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
                )
                data = client.ask(asked, _VERSION).responses[0].partitions[0].records
                if not data:
                    break
                offset = batches_end(data)
            offsets += offset
    return offsets


def batches_end(data: memoryview) -> int:
    """
    The offset behind the last batch.
    """
    end = pos = 0
    while pos < len(data):
        base, size = (int.from_bytes(data[pos + start : pos + stop], "big") for start, stop in ((0, 8), (8, 12)))
        end = base + int.from_bytes(data[pos + 23 : pos + 27], "big") + 1
        pos += 12 + size
    return end


def main() -> None:
    print(HEADING)
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
        fill(kafka)
        reads: dict[str, Callable[[], object]] = {
            "confluent-kafka": partial(consume, kafka),
            "a client that counts": partial(count_bytes, kafka.port),
        }
        for name, read in reads.items():
            found = costs(kafka, read)
            print(row(f"fetch, {name}", "MB/s", RECORDS * RECORD_BYTES / 1e6, found), flush=True)


if __name__ == "__main__":
    main()
