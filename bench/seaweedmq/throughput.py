"""
Large batches of records of 1,000 bytes, written and read again, in each format of kgateway and in the Go gateway's own.

Four partitions, acks of all; one client of librdkafka. The Go gateway closes the connection at a request of more than
1 MiB, so requests are smaller than that. The most recent records are read first, because both gateways may have them at
hand. Then kgateway is restarted, so that the oldest records are only in files, and these are read. kgateway reads more
records than the Go gateway, so that the start of a read weighs the same in both. Peak memory and resident memory are
those of the gateway's process.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.fetch import LARGE as LARGE_FETCHES
from bench.fetch import consumer
from bench.kafka.clients import create_topic, send
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Goal, Measured, Row, at_least, itself_at_most
from bench.produce import LARGE, PARTITIONS, RECORD_BYTES, producer
from bench.seaweedmq.counting import Offsets, count_bytes
from bench.seaweedmq.servers import all_taken, broker_pid, config_of, is_ours, topic_of, values_of
from bench.work import cost
from tests.faults.process import MIB, cpu_seconds, peak_resident_bytes, resident_bytes

_RECORDS = {"batch": 300_000, "record": 100_000, "plain": 100_000}
_THEIR_RECORDS = 40_000
_LAST_RECORDS = {"batch": 200_000, "record": 80_000, "plain": 80_000}
_FIRST_RECORDS = {"batch": 200_000, "record": 50_000, "plain": 50_000}  # which are only in files by then


class _Goals(NamedTuple):
    produce: Goal
    recent: Goal
    files: Goal


_GOALS = {
    "batch": _Goals(at_least(10), at_least(10), at_least(10)),
    "record": _Goals(at_least(10), at_least(3), at_least(6)),
    "plain": _Goals(at_least(3), at_least(3), at_least(3)),
}
_REQUESTS = {**LARGE, "batch.size": 900_000, "message.max.bytes": 1_000_000}
_PATIENCE_S = 60
_AT_ONCE = 10_000
_TIMES = 4  # one count of the recent records takes only a tenth of a second
_INDEXES = range(PARTITIONS)


def workload(message_format: str) -> Workload:
    def prepare(server: Server, plan: Plan) -> None:
        create_topic(server, topic_of(server, message_format), config=config_of(server, message_format))

    def run(server: Server, plan: Plan) -> Sequence[Measured]:
        counts = (_RECORDS[message_format], _LAST_RECORDS[message_format], _FIRST_RECORDS[message_format])
        parts = [plan.part(count if is_ours(server) else _THEIR_RECORDS) for count in counts]
        return _measured(server, topic_of(server, message_format), *parts)

    goals, broker = _GOALS[message_format], "{:.1f} s of the broker's CPU per GB"
    rows = [
        Row(f"produce, format {message_format}", "MB/s", goals.produce, "GB", broker),
        Row(f"peak memory while producing, format {message_format}", "MiB", itself_at_most(191)),
        Row(f"consume recent records, format {message_format}", "MB/s", goals.recent, "GB", broker),
        Row(f"the same with a client that counts, format {message_format}", "MB/s", goals.recent, "GB", broker),
        Row(f"consume records that are only in files, format {message_format}", "MB/s", goals.files, "GB", broker),
        Row(f"resident memory after that, format {message_format}", "MiB"),
    ]
    return Workload(f"throughput, format {message_format}", rows, run, prepare)


def _measured(server: Server, topic: str, count: int, last: int, first: int) -> Sequence[Measured]:
    values = values_of(RECORD_BYTES)
    client = producer(server.bootstrap, topic, **_REQUESTS)
    with all_taken(server, topic, count, PARTITIONS):
        found = [_cost(server, count, partial(send, client, topic, values, count))]
    found.append(Measured(peak_resident_bytes(server.pid) / MIB))
    ends = _ends(server, topic)
    starts = {index: end - last // PARTITIONS for index, end in ends.items()}
    found.append(_consumed(server, topic, starts, last))
    found.append(_cost(server, last * _TIMES, partial(_counted, server, topic, starts, ends)))
    if is_ours(server):
        server.stop()
        server.start()
    found.append(_consumed(server, topic, dict.fromkeys(ends, 0), first))
    return [*found, Measured(resident_bytes(server.pid) / MIB)]


def _ends(server: Server, topic: str) -> dict[int, int]:
    reader = consumer(server.bootstrap)
    ends = {index: reader.get_watermark_offsets(TopicPartition(topic, index), _PATIENCE_S)[1] for index in _INDEXES}
    reader.close()
    return ends


def _consumed(server: Server, topic: str, starts: Offsets, count: int) -> Measured:
    reader = consumer(server.bootstrap, **LARGE_FETCHES)
    for index in _INDEXES:  # one that knows the server already; one that has read would first wait for its last fetch
        reader.get_watermark_offsets(TopicPartition(topic, index), _PATIENCE_S)
    places = [TopicPartition(topic, index, start) for index, start in starts.items()]
    found = _cost(server, count, partial(_read, reader, places, count))
    reader.close()
    return found


def _counted(server: Server, topic: str, starts: Offsets, ends: Offsets) -> None:
    for _ in range(_TIMES):
        count_bytes(server.bootstrap, topic, starts, ends)


def _cost(server: Server, count: int, work: partial[None]) -> Measured:
    megabytes, pid = count * RECORD_BYTES / 1e6, broker_pid(server)
    before = cpu_seconds(pid)
    took = cost(server.pid, work)
    return Measured(
        megabytes / took.seconds,
        took.server_cpu * 1_000 / megabytes,
        took.client_cpu / took.seconds,
        (cpu_seconds(pid) - before) * 1_000 / megabytes,
    )


def _read(reader: Consumer, starts: Sequence[TopicPartition], count: int) -> None:
    reader.assign(list(starts))
    left = count
    while left > 0:
        found = reader.consume(min(left, _AT_ONCE), timeout=_PATIENCE_S)
        assert found, f"{left} records of {starts[0].topic} are missing"
        assert not any(message.error() for message in found)
        left -= len(found)
