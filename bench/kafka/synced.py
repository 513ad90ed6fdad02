"""
Producing where an acknowledgement means that the records are on disk, by the topic's config.

For Kafka that is `flush.messages=1`: each append is followed by an fsync before the next one to the partition. For
kgateway it is `kgateway.acks.fsync=true`: an ack waits for an fsync, which many may share. That the promise is kept is
checked: as soon as all is acknowledged, nothing of the logs may wait to be written. Each of the small producers has one
request under way and the next one ready, so as many are in flight as there are producers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from bench.kafka.clients import all_taken, create_topic, random_values
from bench.kafka.page_cache import unwritten_bytes
from bench.kafka.produce_one import CPU_PER
from bench.kafka.rounds import NotMeasurable, Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import FLUSH_S, LARGE, ONE_RECORD, RECORD_BYTES, SMALL_BYTES, producer
from bench.work import Cost, cost

_SMALL_PRODUCERS = 16
_LARGE_PRODUCERS = 4
_PARTITIONS = 4
_GOALS = {_PARTITIONS: 1.5, 16: 1.0, 64: 1.0}  # by the number of partitions to which the small producers write
_REQUESTS = 32_000
_RECORDS = 200_000
_ONE_IN_FLIGHT = {**ONE_RECORD, "max.in.flight": 1}


def _topic(partitions: int) -> str:
    return f"synced-{partitions}"


def _prepare(server: Server, plan: Plan) -> None:
    for partitions in _GOALS:
        try:
            create_topic(server, _topic(partitions), partitions, server.synced)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.INVALID_CONFIG:
                raise
            why = f"{server.name} makes no topic with {dict(server.synced)}: {refused.args[0].str()}"
            raise NotMeasurable(why) from refused
    if not any(server.data.glob("*/*.log")):
        raise NotMeasurable(f"{server.name} writes nothing to disk")


def _produced(
    server: Server, count: int, values: Sequence[bytes], partitions: int, producers: int, settings: Mapping[str, Any]
) -> Cost:
    """
    What it costs to have all records acknowledged, each producer the same number.
    """
    topic = _topic(partitions)
    clients = [producer(server.bootstrap, topic, **settings) for _ in range(producers)]
    with all_taken(server, topic, count, partitions):
        took = cost(server.pid, lambda: _send(clients, topic, count, values, partitions))
        left = unwritten_bytes(server.data, f"{topic}-*/*.log")
    assert not left, f"{server.name} has acknowledged {left} bytes that are not on disk"
    return took


def _send(clients: Sequence[Producer], topic: str, count: int, values: Sequence[bytes], partitions: int) -> None:
    for number in range(count):
        client = clients[number % len(clients)]
        client.produce(topic, values[number % len(values)], partition=number % partitions)
    for client in clients:
        assert client.flush(FLUSH_S) == 0


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    requests, records = plan.part(_REQUESTS), plan.part(_RECORDS)
    small, large = random_values(SMALL_BYTES), random_values(RECORD_BYTES)
    found = []
    for partitions in _GOALS:
        took = _produced(server, requests, small, partitions, _SMALL_PRODUCERS, _ONE_IN_FLIGHT)
        cpu = took.server_cpu * CPU_PER / requests
        found.append(Measured(requests / took.seconds, cpu, took.client_cpu / took.seconds))
    took = _produced(server, records, large, _PARTITIONS, _LARGE_PRODUCERS, LARGE)
    megabytes = records * RECORD_BYTES / 1e6
    cpu = took.server_cpu * 1_000 / megabytes
    return [*found, Measured(megabytes / took.seconds, cpu, took.client_cpu / took.seconds)]


_SMALL = f"synced, {_SMALL_PRODUCERS} producers, one record a request"
_PER = f"{CPU_PER:,} requests"

WORKLOAD = Workload(
    "produce with an fsync before each ack",
    [
        *(Row(f"{_SMALL}, {count} partitions", "requests/s", at_least(goal), _PER) for count, goal in _GOALS.items()),
        Row(f"synced, {_LARGE_PRODUCERS} producers, batches of 1 MB", "MB/s", at_least(1.0), "GB"),
    ],
    _run,
    _prepare,
)
