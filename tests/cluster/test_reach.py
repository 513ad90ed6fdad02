"""
What clients of a listener find of a cluster.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.reach import Reach
from kgateway.cluster.view import ClusterView, Node, PartitionState
from tests.cluster.clusters import FAR, GONE, NEAR, OWN


def _reach(controller_id: int = OWN) -> Reach:
    return Reach.of(ClusterView("cluster", (Node(OWN), NEAR, FAR), controller_id), OWN, "plaintext")


def _led(*replicas: int) -> PartitionState:
    return PartitionState(replicas[0], 0, replicas, replicas)


class ReachTests(SynchronousTestCase):
    def test_nodes(self) -> None:
        """
        The gateway itself is in reach, and the others that have an address on the listener.
        """
        assert [OWN, NEAR.id] == list(_reach().nodes)

    def test_leader(self) -> None:
        """
        A leader out of reach is none.
        """
        assert NEAR.id == _reach().leader(_led(NEAR.id))
        for node in (FAR.id, GONE):
            assert _reach().leader(_led(node)) == -1

    def test_offline(self) -> None:
        """
        Replicas out of reach are offline.
        """
        assert [FAR.id, GONE] == _reach().offline(_led(OWN, FAR.id, NEAR.id, GONE))

    def test_controller(self) -> None:
        """
        A controller out of reach is none.
        """
        assert NEAR.id == _reach(NEAR.id).controller_id
        assert _reach(FAR.id).controller_id == -1
