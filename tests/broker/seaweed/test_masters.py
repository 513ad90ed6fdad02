"""
Masters of a real cluster name their leader and the servers they know.
"""

import pytest

from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.masters import BROKERS, FILERS
from tests.broker.seaweed.real_reactor import reactor, wait

_NOBODY = "127.0.0.1:1"


def test_a_master_that_is_down_is_passed_over(cluster: DevCluster) -> None:
    """
    The next one is asked.
    """
    seaweed = SeaweedCluster(master_addresses(f"{_NOBODY},{cluster.masters[0]}"), reactor)
    assert wait(seaweed.masters.leader()) == ServerAddress.parse(cluster.masters[0])
    (filer,) = wait(seaweed.masters.nodes(FILERS))
    assert ServerAddress.parse(filer.address) == ServerAddress.parse(cluster.filer)
    wait(seaweed.close())


def test_servers_are_known_by_their_kind(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    The servers have registered with the masters.
    """
    (broker,) = wait(seaweed.masters.nodes(BROKERS))
    assert broker.address == cluster.broker_address
    assert broker.created_at_ns > 0
    assert wait(seaweed.brokers()) == [cluster.broker_address]


def test_filers_of_another_group_are_not_seen(cluster: DevCluster) -> None:
    """
    Several groups may share masters.
    """
    seaweed = SeaweedCluster(master_addresses(cluster.masters[0]), reactor, filer_group="others")
    assert wait(seaweed.masters.nodes(FILERS)) == []
    with pytest.raises(RpcError, match="no filer"):
        wait(seaweed.filer())
    wait(seaweed.close())


def test_what_was_found_is_remembered_until_a_refresh(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    The masters are not asked each time.
    """
    wait(seaweed.masters.nodes(BROKERS))
    cluster.server.kill()
    assert wait(seaweed.masters.nodes(BROKERS))
    with pytest.raises(RpcError) as told:
        wait(seaweed.masters.nodes(BROKERS, timeout_s=0.5, refresh=True))
    assert told.value.status is Status.UNAVAILABLE
    assert cluster.masters[0] in told.value.message


def test_all_masters_that_were_asked_are_named_when_none_answers() -> None:
    """
    The error has the failure of each.
    """
    seaweed = SeaweedCluster(master_addresses("127.0.0.1:1,127.0.0.1:2"), reactor)
    with pytest.raises(RpcError, match=r"no master knows the leader: 127.0.0.1:1: .*; 127.0.0.1:2: "):
        wait(seaweed.masters.leader(timeout_s=0.1))
    wait(seaweed.close())


def test_many_who_ask_at_once_are_answered_together(seaweed: SeaweedCluster) -> None:
    """
    A caller that cancels does not affect the others.
    """
    asked = [seaweed.masters.nodes(BROKERS, refresh=True) for _ in range(3)]
    gone = asked.pop(1)
    gone.addErrback(lambda failure: None)
    gone.cancel()
    first, second = (wait(each) for each in asked)
    assert first == second
    assert first is second
