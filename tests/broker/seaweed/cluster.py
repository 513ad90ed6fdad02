"""
A real cluster of SeaweedFS and SeaweedMQ, one for all tests of a worker: each test has folders and topics of its own.

    def test_something(cluster):
        cluster.broker.kill()

A test may kill, pause and start again what it likes: the next one finds all of it running.
"""

from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from tests.broker.seaweed.real_reactor import WAIT_S, reactor, wait

T = TypeVar("T")


def done(coroutine: Coroutine[Any, Any, T], timeout: float = WAIT_S) -> T:
    """
    Return the result of a coroutine.
    """
    return wait(Deferred.fromCoroutine(coroutine), timeout)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("weed"))
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> None:
    """
    The cluster, with everything running that an earlier test has killed or paused.
    """
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").mend()


@pytest.fixture
def seaweed(cluster: DevCluster) -> Iterator[SeaweedCluster]:
    """
    A client of the cluster.
    """
    client = SeaweedCluster(master_addresses(",".join(cluster.masters)), reactor)
    yield client
    wait(client.close())


@pytest.fixture
def filer(seaweed: SeaweedCluster) -> Filer:
    """
    The filer of the cluster.
    """
    return wait(seaweed.filer())


@pytest.fixture
def folder() -> str:
    """
    A folder in the filer that no other test uses.
    """
    return f"/tests/{uuid4().hex}"
