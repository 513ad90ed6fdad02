"""
What it costs to read only what is committed: read_committed beside read_uncommitted, where nothing was aborted.

The topic has been written in transactions of 100 records, so it is one of small batches and many markers, and it is in
the page cache. Both ways are taken in turns, several times a round, and who begins changes; what the one costs beside
the other is the median of all pairs. Beside confluent-kafka, which makes an object of each record, a client reads that
counts bytes: with it the server is what one waits for.
"""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench.fetch import count_bytes
from bench.kafka.clients import create_topic, random_values, read, reader
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, itself_at_most
from bench.kafka.transacting import all_committed, sizes, transact, transacting
from bench.produce import RECORD_BYTES
from bench.work import Cost, cost

TOPIC = "committed"
_RECORDS, _EACH = 200_000, 100
_TURNS = 10
_ISOLATIONS = ("read_uncommitted", "read_committed")

_Reading = Callable[[Server, str, int], Cost]


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)
    count = plan.part(_RECORDS)
    with all_committed(server, TOPIC, *sizes(count, _EACH)):
        transact(transacting(server, "filler"), TOPIC, random_values(RECORD_BYTES), count, _EACH)


def _with_librdkafka(server: Server, isolation: str, count: int) -> Cost:
    with reader(server, TOPIC, **{"isolation.level": isolation}) as client:
        return cost(server.pid, partial(read, client, TOPIC, count))


def _counting(server: Server, isolation: str, count: int) -> Cost:
    return cost(server.pid, partial(count_bytes, server.port, TOPIC, _ISOLATIONS.index(isolation)))


_READINGS: dict[str, _Reading] = {"confluent-kafka": _with_librdkafka, "a client that counts": _counting}


def _in_turns(server: Server, reading: _Reading, count: int) -> Sequence[Measured]:
    found: dict[str, list[Cost]] = {isolation: [] for isolation in _ISOLATIONS}
    for turn in range(_TURNS):
        for isolation in _ISOLATIONS if turn % 2 == 0 else reversed(_ISOLATIONS):
            found[isolation].append(reading(server, isolation, count))
    megabytes = _TURNS * count * RECORD_BYTES / 1e6
    uncommitted, committed = (_sum(found[isolation]) for isolation in _ISOLATIONS)
    rates = [
        Measured(megabytes / took.seconds, took.server_cpu * 1_000 / megabytes, took.client_cpu / took.seconds)
        for took in (uncommitted, committed)
    ]
    pairs = zip(*(found[isolation] for isolation in _ISOLATIONS), strict=True)
    return [*rates, Measured(median(after.seconds / before.seconds for before, after in pairs))]


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(cost.seconds for cost in costs),
        sum(cost.server_cpu for cost in costs),
        sum(cost.client_cpu for cost in costs),
    )


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count = plan.part(_RECORDS)
    return [measured for reading in _READINGS.values() for measured in _in_turns(server, reading, count)]


def _rows(client: str) -> Sequence[Row]:
    rates = [Row(f"{isolation}, {client}", "MB/s", per="GB") for isolation in _ISOLATIONS]
    return [*rates, Row(f"the time of read_committed, {client}", "of read_uncommitted's", itself_at_most(1.1))]


WORKLOAD = Workload(
    "consume what was written in transactions",
    [row for client in _READINGS for row in _rows(client)],
    _run,
    _prepare,
)
