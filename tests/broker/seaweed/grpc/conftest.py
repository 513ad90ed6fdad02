"""
Servers and channels of one test. A test fails if Twisted logs a failure.
"""

import gc
import sys
from collections.abc import Iterator
from subprocess import PIPE, Popen
from typing import Any

import pytest
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from kgateway.broker.seaweed.grpc.channel import Channel
from tests.broker.seaweed.grpc.grpcio_server import Server
from tests.broker.seaweed.real_reactor import reactor, wait


@pytest.fixture(autouse=True)
def failures(frozen_objects: None) -> Iterator[list[Any]]:
    """
    The logged failures; a test that expects some removes them.
    """
    found: list[Any] = []

    @implementer(ILogObserver)
    def observe(event: LogEvent) -> None:
        if "log_failure" in event:
            found.append(event["log_failure"])

    globalLogPublisher.addObserver(observe)
    yield found
    gc.collect()
    globalLogPublisher.removeObserver(observe)
    assert not found


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def channel(server: Server) -> Iterator[Channel]:
    channel = channel_to(server.port)
    yield channel
    wait(channel.close())
    assert not reactor.getDelayedCalls()


@pytest.fixture
def process() -> Iterator[Popen[str]]:
    """
    A server that can be killed; its first line is its port.
    """
    command = [sys.executable, "-m", "tests.broker.seaweed.grpc.grpcio_server"]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        process.kill()


def endpoint(port: int) -> TCP4ClientEndpoint:
    """
    An endpoint for a port of this machine.
    """
    return TCP4ClientEndpoint(reactor, "127.0.0.1", port)


def channel_to(port: int) -> Channel:
    """
    A channel to a server on this machine.
    """
    return Channel(endpoint(port).connect, f"127.0.0.1:{port}", reactor)
