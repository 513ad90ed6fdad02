"""
Two hundred groups of ten members, which all change at the same time.
"""

from collections.abc import Sequence

from bench.kafka.rebalances import measured, prepare, rows
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured

TOPIC = "many-groups"
_GROUPS = 200
_MEMBERS = 10


def _prepare(server: Server, plan: Plan) -> None:
    prepare(server, TOPIC, _MEMBERS)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    return measured(server, TOPIC, plan.part(_GROUPS), _MEMBERS)


WORKLOAD = Workload("two hundred groups", rows(f"{_GROUPS} groups of {_MEMBERS}"), _run, _prepare)
