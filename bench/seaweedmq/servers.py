"""
The two gateways in front of one cluster; one is idle while the other works.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import MappingProxyType

from bench.kafka.clients import random_values, records_in
from bench.kafka.servers import Gateway, Server
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.broker.seaweedmq.go_gateway import PORT, GoGateway

_SOON_S = 5
_LOOK_EVERY_S = 0.2
FORMATS = ("batch", "record", "plain")


class Ours(Gateway):
    def __init__(self, cluster: DevCluster, folder: Path) -> None:
        super().__init__(folder, f"seaweedmq:{','.join(cluster.masters)}")
        self.data = cluster.folder
        self.cluster = cluster


class Go(GoGateway):
    name = "the Go gateway"
    port = PORT
    synced: Mapping[str, str] = MappingProxyType({})

    def __init__(self, cluster: DevCluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        self.data = cluster.folder
        self.cluster = cluster


@contextmanager
def running(folder: Path) -> Iterator[list[Server]]:
    """
    A cluster, and both gateways: the Go gateway first.
    """
    with ExitStack() as stack:
        cluster = DevCluster(folder / "cluster")
        stack.callback(cluster.kill)
        cluster.start()
        both: list[Server] = [Go(cluster, folder / "go"), Ours(cluster, folder / "kgateway")]
        for server in both:
            stack.callback(server.stop)
            server.start()
        yield both


def is_ours(server: Server) -> bool:
    return isinstance(server, Ours)


def broker_pid(server: Server) -> int:
    """
    The pid of the cluster's broker.
    """
    return cluster_of(server).broker.pid


def cluster_of(server: Server) -> DevCluster:
    """
    The cluster that both gateways share.
    """
    assert isinstance(server, Ours | Go)
    return server.cluster


def values_of(size: int, count: int = 10_000) -> list[bytes]:
    """
    Different ones. None begins with a zero: the Go gateway takes such a one for a reference to a schema, and refuses
    the request where there is no such schema.
    """
    return [b"v" + value for value in random_values(size - 1, count)]


@contextmanager
def all_taken(server: Server, topic: str, count: int, partitions: int) -> Iterator[None]:
    """
    The topic must grow by so many records while this is entered, or soon after: the Go gateway does not look more often
    than ten times a second how many there are.
    """
    before = records_in(server, topic, partitions)
    yield
    deadline = monotonic() + _SOON_S
    while (taken := records_in(server, topic, partitions) - before) != count:
        assert monotonic() < deadline, f"{server.name} has taken {taken} records of {count}"
        sleep(_LOOK_EVERY_S)


def topic_of(server: Server, message_format: str) -> str:
    """
    The topic of a server for this format; the Go gateway has only one.
    """
    return f"ours-{message_format}" if is_ours(server) else "theirs"


def config_of(server: Server, message_format: str) -> dict[str, str] | None:
    """
    The topic's configs.
    """
    return {"seaweedmq.format": message_format} if is_ours(server) else None
