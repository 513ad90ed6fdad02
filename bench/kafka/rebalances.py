"""
How long groups take until all members have their assignment, by both protocols, and what that costs the server.

All members are in one process, each with a connection of its own. First all join groups that are empty; then, several
times, one member of each group leaves and joins again at once.
"""

from collections.abc import Sequence
from time import sleep

from bench.kafka.classic_groups import ClassicGroups
from bench.kafka.clients import create_topic
from bench.kafka.consumer_groups import ConsumerGroups
from bench.kafka.multiplexed import Connections
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.work import cost
from tests.faults.process import MIB, resident_bytes

_CHANGES = 5  # of a round
_KINDS = (ClassicGroups, ConsumerGroups)


def rows(what: str) -> list[Row]:
    """
    The rows for groups of this name.
    """
    times = [
        Row(f"{what}, {kind.name}: {change}", "ms", at_most(1.0), "rebalance")
        for kind in _KINDS
        for change in ("all join", "a member leaves and joins again")
    ]
    return [*times, Row(f"{what} of each kind: resident memory", "MiB", at_most(1.0))]


def prepare(server: Server, topic: str, size: int) -> None:
    """
    Create a topic with a partition for each member of a group.
    """
    create_topic(server, topic, size)


def measured(server: Server, topic: str, count: int, size: int) -> Sequence[Measured]:
    """
    What so many groups of so many members cost.
    """
    with Connections(server.port) as connections:
        both = [kind(connections, topic, count, size) for kind in _KINDS]
        found = [one for groups in both for one in _changes(server, groups)]
        resident = Measured(resident_bytes(server.pid) / MIB)
        for groups in both:
            groups.dissolve()
    return [*found, resident]


def _changes(server: Server, groups: ClassicGroups | ConsumerGroups) -> list[Measured]:
    joined = cost(server.pid, groups.form)
    groups.check()
    replaced = []
    for _ in range(_CHANGES):
        sleep(groups.pause_s)
        replaced.append(cost(server.pid, groups.replace_one))
        groups.check()
    return [
        Measured(
            sum(one.seconds for one in costs) * 1_000 / len(costs),
            sum(one.server_cpu for one in costs) / len(costs),
            sum(one.client_cpu for one in costs) / sum(one.seconds for one in costs),
        )
        for costs in ([joined], replaced)
    ]
