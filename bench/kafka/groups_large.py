"""
A group of a thousand members.
"""

from collections.abc import Sequence

from bench.kafka.rebalances import measured, prepare, rows
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured

TOPIC = "large"
_MEMBERS = 1_000


def _prepare(server: Server, plan: Plan) -> None:
    prepare(server, TOPIC, plan.part(_MEMBERS))


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    return measured(server, TOPIC, 1, plan.part(_MEMBERS))


WORKLOAD = Workload("a group of a thousand members", rows(f"a group of {_MEMBERS:,}"), _run, _prepare)
