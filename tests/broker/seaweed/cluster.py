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

from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import NotStarted
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.filer_pb2 import CreateEntryRequest, CreateEntryResponse, Entry
from kgateway.broker.seaweed.security.cluster_access import Role
from tests.broker.seaweed.real_reactor import WAIT_S, reactor, wait

T = TypeVar("T")

_PORT_TAKEN = "address already in use"

_CREATE = Method("/filer_pb.SeaweedFiler/CreateEntry", CreateEntryRequest, CreateEntryResponse)


def done(coroutine: Coroutine[Any, Any, T], timeout: float = WAIT_S) -> T:
    """
    Return the result of a coroutine.
    """
    return wait(Deferred.fromCoroutine(coroutine), timeout)


def pause_second_filer(cluster: DevCluster) -> None:
    """
    Pause one of two filers that share a store, but not while it has locked the SQLite file, which would stop both.
    """
    first = ServerAddress.parse(cluster.filer).grpc
    request = CreateEntryRequest(directory="/tests", entry=Entry(name="probe"))
    while True:
        cluster.filers[1].pause()
        try:
            cluster.call(Role.FILER, first, _CREATE, request, 1)
        except RpcError:
            cluster.filers[1].resume()
        else:
            return


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = _started(tmp_path_factory)
    try:
        yield running
    finally:
        running.kill()


def _started(tmp_path_factory: pytest.TempPathFactory) -> DevCluster:
    """
    A running cluster. Its ports were free when they were chosen, but another process may have taken one since.
    """
    running = DevCluster(tmp_path_factory.mktemp("weed"))
    try:
        return running.start()
    except NotStarted as failure:
        running.kill()
        if _PORT_TAKEN not in str(failure):
            raise
        return DevCluster(tmp_path_factory.mktemp("weed")).start()


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
