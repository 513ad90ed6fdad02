"""
Large batches of records of 1,000 bytes, written and read again, in each form of kgateway and in the Go gateway's own.

Four partitions, acks of all; one client of librdkafka. The Go gateway closes the connection at a request of more than
1 MiB, so requests are smaller than that. What was written last is read first, which both may have at hand; then what
was written first, by a gateway that was started anew and has nothing but files; of ours more, so that what it takes to
begin weighs alike. It is looked at how much memory a gateway has had at most, and has in use.
"""

from collections.abc import Sequence
from functools import partial

from confluent_kafka import Consumer, TopicPartition

from bench.fetch import LARGE as LARGE_FETCHES
from bench.fetch import consumer
from bench.kafka.clients import create_topic, send
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import LARGE, PARTITIONS, RECORD_BYTES, producer
from bench.seaweedmq.servers import all_taken, broker_pid, config_of, is_ours, topic_of, values_of
from bench.work import cost
from tests.faults.process import MIB, cpu_seconds, peak_resident_bytes, resident_bytes

_RECORDS = {"batch": 300_000, "record": 100_000, "plain": 100_000}
_THEIR_RECORDS = 40_000
_LAST_RECORDS = {"batch": 200_000, "record": 80_000, "plain": 80_000}
_FIRST_RECORDS = {"batch": 200_000, "record": 50_000, "plain": 50_000}  # that are only in files by then
_GOALS = {"batch": at_least(10), "record": at_least(3), "plain": at_least(3)}
_REQUESTS = {**LARGE, "batch.size": 900_000, "message.max.bytes": 1_000_000}
_PATIENCE_S = 60
_AT_ONCE = 10_000


def workload(form: str) -> Workload:
    """
    Of one form.
    """

    def prepare(server: Server, plan: Plan) -> None:
        create_topic(server, topic_of(server, form), config=config_of(server, form))

    def run(server: Server, plan: Plan) -> Sequence[Measured]:
        counts = (_RECORDS[form], _LAST_RECORDS[form], _FIRST_RECORDS[form])
        parts = [plan.part(count if is_ours(server) else _THEIR_RECORDS) for count in counts]
        return _measured(server, topic_of(server, form), *parts)

    broker = "{:.1f} s of the broker's CPU per GB"
    rows = [
        Row(f"produce, form {form}", "MB/s", _GOALS[form], "GB", broker),
        Row(f"resident at most until then, form {form}; goal: under 191", "MiB"),
        Row(f"consume what was written last, form {form}", "MB/s", _GOALS[form], "GB", broker),
        Row(f"consume what was written first, form {form}", "MB/s", _GOALS[form], "GB", broker),
        Row(f"resident after that, form {form}", "MiB"),
    ]
    return Workload(f"throughput, form {form}", rows, run, prepare)


def _measured(server: Server, topic: str, count: int, last: int, first: int) -> Sequence[Measured]:
    values = values_of(RECORD_BYTES)
    client = producer(server.bootstrap, topic, **_REQUESTS)
    with all_taken(server, topic, count, PARTITIONS):
        found = [_cost(server, count, partial(send, client, topic, values, count))]
    found.append(Measured(peak_resident_bytes(server.pid) / MIB))
    for read_count, is_last in ((last, True), (first, False)):
        if is_ours(server) and not is_last:
            server.stop()
            server.start()
        # One that has read before would first wait for its fetch at the end of the log.
        reader = consumer(server.bootstrap, **LARGE_FETCHES)
        ends = [_end(reader, topic, index) for index in range(PARTITIONS)]
        starts = [end - read_count // PARTITIONS if is_last else 0 for end in ends]
        places = [TopicPartition(topic, index, start) for index, start in enumerate(starts)]
        found.append(_cost(server, read_count, partial(_read, reader, places, read_count)))
        reader.close()
    return [*found, Measured(resident_bytes(server.pid) / MIB)]


def _end(reader: Consumer, topic: str, index: int) -> int:
    _, end = reader.get_watermark_offsets(TopicPartition(topic, index), _PATIENCE_S)
    return int(end)


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
