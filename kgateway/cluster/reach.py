"""
The cluster as the clients of one listener find it: a node that has no address there is not theirs to use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kgateway.cluster.view import NO_NODE, ClusterView, Node, PartitionState


@dataclass(frozen=True, slots=True)
class Reach:
    """
    The nodes that clients reach.
    """

    view: ClusterView
    nodes: Mapping[int, Node]

    @classmethod
    def of(cls, view: ClusterView, own_id: int, listener: str) -> Self:
        """
        The reach of a listener. Whoever asks is connected to this gateway, so that one is in it.
        """
        near = {node.id: node for node in view.nodes if node.id == own_id or listener in node.addresses}
        return cls(view, near)

    @property
    def controller_id(self) -> int:
        """
        The controller, if clients reach it.
        """
        return self.view.controller_id if self.view.controller_id in self.nodes else NO_NODE

    def leader(self, partition: PartitionState) -> int:
        """
        The leader of a partition, if clients reach it.
        """
        return partition.leader_id if partition.leader_id in self.nodes else NO_NODE

    def offline(self, partition: PartitionState) -> list[int]:
        """
        The replicas of a partition that clients do not reach.
        """
        return [node for node in partition.replicas if node not in self.nodes]
