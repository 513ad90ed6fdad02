"""
Where a client wants the replicas of partitions, and whether they could be there.
"""

from collections import Counter
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
    counted = Counter(sorted(assignment.index for assignment in assignments))
    twice = [index for index, count in counted.items() if count > 1]
    if twice:
        wrong = f"Found multiple manual partition assignments for partition {twice[0]}"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)
    if [*counted] != list(range(len(counted))):
        wrong = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)


def check_nodes(nodes: Sequence[int], view: ClusterView, replication_factor: int) -> None:
    """
    Refuse the nodes of one partition, where the others of its topic have this many.
    """
    strangers = [node for node in nodes if view.node(node) is None]
    twice = [node for node, count in Counter(sorted(nodes)).items() if count > 1]
    wrong = None
    if not nodes:
        wrong = "includes an empty replica list."
    elif twice:
        wrong = f"includes the broker {twice[0]} more than once."
    elif strangers:
        wrong = f"includes broker {strangers[0]}, but no such broker is registered."
    elif len(nodes) != replication_factor:
        wrong = (
            f"includes a partition with {len(nodes)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s)."
        )
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {wrong}")
