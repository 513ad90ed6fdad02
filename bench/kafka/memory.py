"""
The resident memory of the server after it has taken and given out a good deal.

That is what the process holds itself, Java's heap of 1 GB included as far as it was touched; the page cache is not part
of it.
"""

from collections.abc import Sequence

from bench.kafka.clients import create_topic, fill, read, reader
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from tests.faults.process import MIB, resident_bytes

TOPIC = "memory"
_RECORDS = 400_000


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count = plan.part(_RECORDS)
    fill(server, TOPIC, count)
    with reader(server, TOPIC) as client:
        read(client, TOPIC, count)
    return [Measured(resident_bytes(server.pid) / MIB)]


WORKLOAD = Workload(
    "memory",
    [Row("resident after producing and consuming", "MiB", at_most(0.08))],
    _run,
    _prepare,
)
