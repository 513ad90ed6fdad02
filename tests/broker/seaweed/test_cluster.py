"""
A client of a cluster has one channel to each server, and uses another filer when one is gone.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.calls.breaker import GuardedChannel
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import HOST, DevCluster, free_ports
from kgateway.broker.seaweed.dev.weed_process import WeedProcess
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.masters import FILERS
from kgateway.broker.seaweed.protos.messaging_pb2 import TopicExistsRequest, TopicExistsResponse
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, reactor, wait

# Any broker answers that at once, in whatever state it is.
_UNKNOWN = Method("/messaging_pb.SeaweedMessaging/Unknown", TopicExistsRequest, TopicExistsResponse)
_REQUEST = TopicExistsRequest()


@pytest.fixture
def two_filers(tmp_path: Path) -> Iterator[tuple[DevCluster, WeedProcess]]:
    """
    A cluster for one test, and the process of its second filer.
    """
    cluster = DevCluster(tmp_path)
    (port,) = free_ports(1, range(10_000, 11_000))  # by its address it is the first
    options = [f"-master={cluster.masters[0]}", f"-ip={HOST}", f"-port={port}", f"-defaultStoreDir={tmp_path}"]
    second = WeedProcess("filer", ["filer", *options], tmp_path)
    try:
        cluster.start_server()
        second.start()
        yield cluster, second
    finally:
        second.kill()
        cluster.kill()


def _check_answer(channel: GuardedChannel) -> None:
    with pytest.raises(RpcError) as told:
        wait(channel.call(_UNKNOWN, _REQUEST, 5))
    assert told.value.status is Status.UNIMPLEMENTED


def test_a_server_has_one_channel(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    Every request for it returns the same one.
    """
    (broker,) = wait(seaweed.brokers())
    assert seaweed.channel(broker) is seaweed.channel(broker)
    _check_answer(seaweed.channel(broker))
    first = wait(seaweed.filer())
    assert wait(seaweed.filer()) is first
    assert seaweed.filer_at(ServerAddress.parse(cluster.filer)) is first


def test_who_does_not_answer_is_left_alone_and_asked_again_later(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    Five calls fail, further ones are not made; later one is tried.
    """
    channel = seaweed.channel(cluster.broker_address)
    cluster.broker.kill()
    for _ in range(5):
        assert not channel.is_out
        with pytest.raises(RpcError, match="refused"):
            wait(channel.call(_UNKNOWN, _REQUEST, 5))
    assert channel.is_out
    with pytest.raises(RpcError, match="is not called for a while") as told:
        wait(channel.call(_UNKNOWN, _REQUEST, 5))
    assert told.value.status is Status.UNAVAILABLE
    cluster.start_broker()
    pause(0.5)
    _check_answer(channel)
    assert not channel.is_out


def test_who_refuses_is_not_left_alone(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    A refusal is an answer.
    """
    channel = seaweed.channel(cluster.broker_address)
    for _ in range(10):
        _check_answer(channel)
    assert not channel.is_out


def test_a_call_that_nobody_waits_for_is_no_failure(cluster: DevCluster, seaweed: SeaweedCluster) -> None:
    """
    It is no success either.
    """
    channel = seaweed.channel(cluster.broker_address)
    for _ in range(10):
        call = channel.call(_UNKNOWN, _REQUEST, 5).addErrback(lambda failure: None)
        call.cancel()
    assert not channel.is_out


def test_another_filer_takes_the_place_of_one_that_is_gone(two_filers: tuple[DevCluster, WeedProcess]) -> None:
    """
    It does so as soon as the loss is known.
    """
    cluster, second = two_filers
    seaweed = SeaweedCluster(master_addresses(cluster.masters[0]), reactor)

    async def both_are_known() -> None:
        while len(await seaweed.masters.nodes(FILERS, refresh=True)) < 2:
            await seaweed.retries.pause(1)

    done(both_are_known())
    using = wait(seaweed.filer())
    first = ServerAddress.parse(cluster.filer)
    assert using.address != first
    second.kill()
    with pytest.raises(RpcError):
        wait(using.entry("/any", timeout_s=2))
    assert wait(seaweed.filer()).address == first
    wait(seaweed.close())


def test_nothing_is_asked_after_the_end(seaweed: SeaweedCluster) -> None:
    """
    No work continues.
    """
    filer = wait(seaweed.filer())
    wait(seaweed.close())
    with pytest.raises(RpcError) as told:
        wait(filer.entry("/any"))
    assert told.value.status is Status.CANCELLED
