"""
What an idle connection costs. Ten thousand of them are nothing unusual, and each byte counts that often.
"""

import gc
import sys
import tracemalloc
from pathlib import Path
from types import FrameType

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock

import kgateway
from kgateway.config.settings import Settings
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.server.connection import Connection
from kgateway.server.gateway import Gateway, ListenerFactory
from tests.faults.client import frame_of
from tests.server.test_connection import Transport

CONNECTIONS = 200
# Of the objects that this package makes: 785 with Python 3.11. An empty deque takes 624 bytes, an empty list 56.
BYTES_MAX = 800 if sys.version_info < (3, 12) else 1_000


def connected(factory: ListenerFactory) -> Connection:
    """
    A connection whose client has asked for the versions of the APIs, and for nothing since.
    """
    connection = factory.buildProtocol(IPv4Address("TCP", "10.0.0.7", 40_000))
    assert connection
    transport = Transport()
    connection.makeConnection(transport)
    connection.dataReceived(frame_of(ApiVersionsRequest(), 0))
    return connection


def test_an_idle_connection_takes_little_time() -> None:
    """
    The watch over all connections calls no function of one that was silent for half a minute.
    """
    clock = Clock()
    gateway = Gateway(Settings(broker="memory:"), clock)
    assert gateway.broker.start().called
    factory = ListenerFactory(gateway, "plaintext", None)
    connections = [connected(factory) for _ in range(CONNECTIONS)]
    called: list[str] = []

    def hook(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("connection.py"):
            called.append(frame.f_code.co_name)

    clock.advance(0)  # the responses leave
    sys.setprofile(hook)
    try:
        clock.pump([5.0] * 6)
    finally:
        sys.setprofile(None)
    assert len(gateway.clients) == len(connections)
    assert not called


def test_an_idle_connection_takes_little_memory() -> None:
    clock = Clock()
    gateway = Gateway(Settings(broker="memory:"), clock)
    assert gateway.broker.start().called
    factory = ListenerFactory(gateway, "plaintext", None)
    warm = connected(factory)
    tracemalloc.start()
    try:
        connections = [connected(factory) for _ in range(CONNECTIONS)]
        clock.advance(0)  # the responses leave
        gc.collect()
        ours = tracemalloc.Filter(True, f"{Path(kgateway.__file__).parent}/*")
        held = tracemalloc.take_snapshot().filter_traces([ours]).statistics("filename")
    finally:
        tracemalloc.stop()
    assert all(connection.requests == 1 for connection in [warm, *connections])
    each = sum(file.size for file in held) / CONNECTIONS
    assert each < BYTES_MAX, f"{each:.0f} bytes: {held}"
