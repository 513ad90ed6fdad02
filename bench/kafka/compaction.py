"""
How long compaction takes, what memory it needs, and what a producer of another topic feels of it.

Records with values of 100 bytes and keys of random numbers are written to a topic of one partition that is not
compacted; then it is. It is over when the server's own checkpoint, the same file for both, says that all is clean but
the segment that is written to. Meanwhile one record after the other is produced to another topic.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs do not pass them on
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench.kafka.clients import admin_of, create_topic, delete_topic, random_values
from bench.kafka.latency import SMALL, Acks, in_ms
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.produce import FLUSH_S, LARGE, SMALL_BYTES, producer
from tests.faults.process import MIB, resident_bytes

TOPIC, BESIDE = "compacted", "beside"
_RECORDS, _KEYS = 10_000_000, 1_000_000
_SEGMENT_BYTES = 128 << 20
_CONFIG = {"min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "1000"}
_PATIENCE_S = 600
_SAMPLE_S = 0.02


def _fill(server: Server, count: int, keys: int) -> None:
    client = producer(server.bootstrap, TOPIC, **LARGE)
    values, chosen = random_values(SMALL_BYTES), random.Random(1)
    for number in range(count):
        _produce(client, values[number % len(values)], b"%d" % chosen.randrange(keys))
    assert client.flush(FLUSH_S) == 0


def _produce(client: Producer, value: bytes, key: bytes) -> None:
    while True:
        try:
            client.produce(TOPIC, value, key, partition=0)
        except BufferError:
            client.poll(0.1)
        else:
            return


def _compact(server: Server) -> None:
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[change])
    admin = admin_of(server)
    [done] = admin.incremental_alter_configs([resource]).values()
    done.result(_PATIENCE_S)


def _is_clean(server: Server) -> bool:
    written_to = max(int(path.stem) for path in (server.data / f"{TOPIC}-0").glob("*.log"))
    try:
        rows = (server.data / "cleaner-offset-checkpoint").read_text().split("\n")
    except FileNotFoundError:
        return False
    return f"{TOPIC} 0 {written_to}" in rows


@contextmanager
def _peak_bytes(pid: int) -> Iterator[Callable[[], int]]:
    """
    The most memory that the process and those it has started held while this was entered.
    """
    most, ended = [0], Event()

    def look() -> None:
        while not ended.wait(_SAMPLE_S):
            most[0] = max(most[0], sum(map(_resident, [pid, *_children(pid)])))

    looking = Thread(target=look)
    looking.start()
    try:
        yield lambda: most[0]
    finally:
        ended.set()
        looking.join()


def _children(pid: int) -> list[int]:
    found = list[int]()
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, tasks.read_text().split())
        except OSError:
            continue  # the thread has ended
    return found


def _resident(pid: int) -> int:
    try:
        return resident_bytes(pid)
    except (OSError, StopIteration):
        return 0  # it has ended


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, BESIDE, partitions=1)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    create_topic(server, TOPIC, 1, _CONFIG | {"segment.bytes": str(max(1 << 20, plan.part(_SEGMENT_BYTES)))})
    _fill(server, plan.part(_RECORDS), plan.part(_KEYS))
    acks, values = Acks(producer(server.bootstrap, BESIDE, **SMALL), BESIDE), random_values(SMALL_BYTES)
    seconds, began = list[float](), monotonic()
    with _peak_bytes(server.pid) as peak:
        _compact(server)
        while not _is_clean(server):
            assert monotonic() < began + _PATIENCE_S, f"{server.name} does not compact"
            seconds += [acks.seconds(value) for value in values[:200]]
        took = monotonic() - began
    delete_topic(server, TOPIC)
    sleep(1)  # what the topic had goes
    return [Measured(took), Measured(peak() / MIB), *in_ms(seconds)]


def rows(time_goal: float, condition: str = "") -> list[Row]:
    """
    The rows for kgateway under a condition.
    """
    return [
        Row(
            f"{condition}{_RECORDS / 1e6:.0f} million records of {_KEYS / 1e6:.0f} million keys",
            "s",
            at_most(time_goal),
        ),
        Row(f"{condition}peak memory of the server's processes", "MiB", at_most(0.3)),
        *[
            Row(f"{condition}during compaction, one record of another topic until its ack, {part}", "ms", at_most(goal))
            for part, goal in (("p50", 1.0), ("p99", 0.5))
        ],
    ]


WORKLOAD = Workload("compaction", rows(1.0), _run, _prepare)
