"""
The two gateways, before one cluster: each works while the other has nothing to do.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import MappingProxyType

from bench.kafka.clients import random_values, records_in
from bench.kafka.servers import Gateway, Server
from kgateway.broker.seaweed.dev_cluster import DevCluster
from tests.broker.seaweedmq.go_gateway import PORT, GoGateway

_SOON_S = 5
_LOOK_EVERY_S = 0.2
FORMS = ("batch", "record", "plain")


class Ours(Gateway):
    """
    kgateway.
    """

    def __init__(self, cluster: DevCluster, folder: Path) -> None:
        super().__init__(folder, f"seaweedmq:{','.join(cluster.masters)}")
        self.data = cluster.folder
        self.cluster = cluster


class Go(GoGateway):
    """
    SeaweedFS's own.
    """

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
    """
    Whether it is kgateway.
    """
    return isinstance(server, Ours)


def broker_pid(server: Server) -> int:
    """
    The process of the cluster that takes and gives out messages.
    """
    assert isinstance(server, Ours | Go)
    return server.cluster.broker.pid


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


def topic_of(server: Server, form: str) -> str:
    """
    The topic that a server has for this form; the Go gateway has but one.
    """
    return f"ours-{form}" if is_ours(server) else "theirs"


def config_of(server: Server, form: str) -> dict[str, str] | None:
    """
    How that topic is made.
    """
    return {"seaweedmq.format": form} if is_ours(server) else None
