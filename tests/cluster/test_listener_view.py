"""
A cluster as clients of one listener see it.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import ClusterView, ListenerView, Node, PartitionState
from tests.cluster.clusters import FAR, GONE, NEAR, OWN


def _reach(controller_id: int = OWN) -> ListenerView:
    return ListenerView.of(ClusterView("cluster", (Node(OWN), NEAR, FAR), controller_id), OWN, "plaintext")


def _led(*replicas: int) -> PartitionState:
    return PartitionState(replicas[0], 0, replicas, replicas)


class ReachTests(SynchronousTestCase):
    def test_nodes(self) -> None:
        """
        Reachable nodes are the gateway itself and others with an address on the listener.
        """
        assert [OWN, NEAR.id] == list(_reach().nodes)

    def test_an_unreachable_leader_is_none(self) -> None:
        assert NEAR.id == _reach().leader(_led(NEAR.id))
        for node in (FAR.id, GONE):
            assert _reach().leader(_led(node)) == -1

    def test_unreachable_replicas_are_offline(self) -> None:
        assert [FAR.id, GONE] == _reach().offline(_led(OWN, FAR.id, NEAR.id, GONE))

    def test_an_unreachable_controller_is_none(self) -> None:
        assert NEAR.id == _reach(NEAR.id).controller_id
        assert _reach(FAR.id).controller_id == -1
