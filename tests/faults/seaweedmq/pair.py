"""
Two gateways before one cluster.
"""

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from tests.faults.client import Client
from tests.faults.seaweedmq.gateway import Gateway

TAKE_OVER_S = 15.0  # the lock of the first runs for 6 s, and a file is written each second; on a machine that is busy
METADATA_VERSION = 12
_OWNS = "this gateway owns the topics"
_PAUSE_S = 0.05


class Pair:
    """
    The gateway that owns the topics, and one that was started beside it.
    """

    def __init__(self, cluster: DevCluster, folder: Path, topic: str) -> None:
        self.first, self.second = Gateway(cluster, folder, "first"), Gateway(cluster, folder, "second", node_id=2)
        self.place = topic, 0
        self.first.start()
        self.first.create(topic, 1, "held", "batch")
        self.second.start()
        until_told(self.first, 1, {1, 2})

    @property
    def bootstrap(self) -> str:
        """
        The addresses of both.
        """
        return f"{self.first.bootstrap},{self.second.bootstrap}"

    def wait_for_second(self) -> float:
        """
        Wait until it owns the topics; the seconds that took.
        """
        return until_owner(self.second)

    def end(self) -> None:
        """
        Leave nothing behind.
        """
        self.first.end()
        self.second.end()


def until(is_so: Callable[[], bool]) -> None:
    """
    Wait until it is so.
    """
    deadline = monotonic() + TAKE_OVER_S
    while not is_so():
        assert monotonic() < deadline
        sleep(_PAUSE_S)


def owns(gateway: Gateway, times: int = 1) -> bool:
    """
    Whether a gateway has come to own the topics so often.
    """
    return gateway.log.count(_OWNS) >= times


def until_owner(gateway: Gateway, times: int = 1) -> float:
    """
    Wait until it owns the topics, for so many times; the seconds that took.
    """
    began = monotonic()
    while not owns(gateway, times):
        assert monotonic() < began + TAKE_OVER_S, f"it does not own the topics after {TAKE_OVER_S} s:\n{gateway.log}"
        sleep(_PAUSE_S)
    return monotonic() - began


def metadata(gateway: Gateway) -> MetadataResponse:
    """
    What it tells of the cluster.
    """
    with Client(gateway.port) as client:
        told = client.ask(MetadataRequest(topics=None), METADATA_VERSION)
    assert isinstance(told, MetadataResponse)
    return told


def until_told(gateway: Gateway, owner: int, nodes: set[int]) -> None:
    """
    Wait until a gateway tells of these nodes, and that this one has the topics.
    """
    deadline = monotonic() + TAKE_OVER_S
    found: object = None
    while monotonic() < deadline:
        try:
            told = metadata(gateway)
        except (ConnectionError, AssertionError):  # its port is closed, or it sends its clients away, perhaps at once
            continue
        found = told.controller_id, {broker.node_id for broker in told.brokers}
        if found == (owner, nodes):
            return
        sleep(_PAUSE_S)
    raise AssertionError(f"node {gateway.name} tells of {found}")
