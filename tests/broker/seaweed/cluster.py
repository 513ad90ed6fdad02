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

from kgateway.broker.seaweed.addresses import master_addresses
from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.seaweed import Seaweed
from tests.broker.seaweed.running import WAIT_S, reactor, wait

T = TypeVar("T")


def done(coroutine: Coroutine[Any, Any, T], timeout: float = WAIT_S) -> T:
    """
    What a coroutine ends with.
    """
    return wait(Deferred.fromCoroutine(coroutine), timeout)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """
    The cluster.
    """
    running = DevCluster(tmp_path_factory.mktemp("weed"))
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> None:
    """
    Whatever the test before has killed or paused runs again.
    """
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").mend()


@pytest.fixture
def seaweed(cluster: DevCluster) -> Iterator[Seaweed]:
    """
    A client of the cluster.
    """
    client = Seaweed(master_addresses(",".join(cluster.masters)), reactor)
    yield client
    wait(client.close())


@pytest.fixture
def filer(seaweed: Seaweed) -> Filer:
    """
    The filer of the cluster.
    """
    return wait(seaweed.filer())


@pytest.fixture
def folder() -> str:
    """
    A folder in the filer that nobody else has.
    """
    return f"/tests/{uuid4().hex}"
