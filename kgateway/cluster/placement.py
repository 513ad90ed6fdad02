"""
Where a client wants the replicas of partitions, and whether they could be there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgateway.cluster.view import ClusterView
from kgateway.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Assignment:
    """
    A partition and the nodes it is to be on; the first is to lead it.
    """

    index: int
    nodes: Sequence[int]


def check_assignments(assignments: Sequence[Assignment], view: ClusterView) -> None:
    """
    Refuse the partitions of a new topic that cannot be placed so.
    """
    for assignment in assignments:
        check_nodes(assignment.nodes, view, len(assignments[0].nodes))
    indexes = sorted(assignment.index for assignment in assignments)
    if indexes != list(range(len(indexes))):
        shown = ", ".join(map(str, indexes[:10]))
        wrong = f"partitions must be numbered from 0 on, each once; these are {shown}"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)


def check_nodes(nodes: Sequence[int], view: ClusterView, replication_factor: int) -> None:
    """
    Refuse the nodes of one partition, where the others of its topic have this many.
    """
    strangers = [node for node in nodes if view.node(node) is None]
    wrong = None
    if not nodes:
        wrong = "an assignment has no broker"
    elif strangers:
        wrong = f"an assignment has broker {strangers[0]}, and no such broker is registered"
    elif len(set(nodes)) < len(nodes):
        wrong = f"an assignment has a broker twice: {', '.join(map(str, nodes))}"
    elif len(nodes) != replication_factor:
        wrong = f"an assignment has {len(nodes)} replica(s), and other partitions have {replication_factor}"
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)
