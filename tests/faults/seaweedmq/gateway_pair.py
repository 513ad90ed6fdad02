"""
Two gateways in front of one cluster.
"""

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from tests.faults.client import Client
from tests.faults.seaweedmq.gateway import Gateway

TAKE_OVER_S = 15.0  # the lock of the first runs for 6 s, and a file is written each second; on a machine that is busy
METADATA_VERSION = 12
_LEADS = "this gateway leads"
_PAUSE_S = 0.05


class Pair:
    """
    The gateway that leads, and one that was started beside it.
    """

    def __init__(self, cluster: DevCluster, folder: Path, topic: str, watchdog_ms: int = 0, acks: str = "held") -> None:
        self.first = Gateway(cluster, folder, "first", watchdog_ms=watchdog_ms)
        self.second = Gateway(cluster, folder, "second", node_id=2, watchdog_ms=watchdog_ms)
        self.place = topic, 0
        self.first.start()
        self.first.create(topic, 1, acks, "batch")
        self.second.start()
        until_told(self.first, 1, {1, 2})

    @property
    def bootstrap(self) -> str:
        return f"{self.first.bootstrap},{self.second.bootstrap}"

    def wait_for_second(self) -> float:
        """
        Wait until the second gateway leads. Returns the seconds that took.
        """
        return until_leader(self.second)

    def end(self) -> None:
        self.first.end()
        self.second.end()


def until(is_so: Callable[[], bool]) -> None:
    """
    Wait until the condition is true.
    """
    deadline = monotonic() + TAKE_OVER_S
    while not is_so():
        assert monotonic() < deadline
        sleep(_PAUSE_S)


def leads(gateway: Gateway, times: int = 1) -> bool:
    """
    Whether a gateway has become the leader this many times.
    """
    return gateway.log.count(_LEADS) >= times


def until_leader(gateway: Gateway, times: int = 1) -> float:
    """
    Wait until a gateway has become the leader this many times. Returns the seconds that took.
    """
    began = monotonic()
    while not leads(gateway, times):
        assert monotonic() < began + TAKE_OVER_S, f"it does not own the topics after {TAKE_OVER_S} s:\n{gateway.log}"
        sleep(_PAUSE_S)
    return monotonic() - began


def metadata(gateway: Gateway) -> MetadataResponse:
    """
    The cluster as a gateway shows it.
    """
    with Client(gateway.port) as client:
        told = client.ask(MetadataRequest(topics=None), METADATA_VERSION)
    assert isinstance(told, MetadataResponse)
    return told


def until_told(gateway: Gateway, leader: int, nodes: set[int]) -> None:
    """
    Wait until a gateway shows these nodes, and this one as the leader.
    """
    deadline = monotonic() + TAKE_OVER_S
    found: object = None
    while monotonic() < deadline:
        try:
            told = metadata(gateway)
        except (ConnectionError, AssertionError):  # its port is closed, or it sends its clients away, perhaps at once
            continue
        found = told.controller_id, {broker.node_id for broker in told.brokers}
        if found == (leader, nodes):
            return
        sleep(_PAUSE_S)
    raise AssertionError(f"node {gateway.name} tells of {found}")
