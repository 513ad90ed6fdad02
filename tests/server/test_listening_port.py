"""
A listening port that is closed and reopened.
"""

from twisted.internet.protocol import Factory

from kgateway.server.listening_port import ListeningPort
from tests.broker.seaweed.real_reactor import reactor, wait


def test_a_reopened_port_keeps_its_number() -> None:
    """
    The system chose it, and clients know it.
    """
    port = reactor.listenTCP(0, Factory(), interface="127.0.0.1")
    where, listening = port.getHost(), ListeningPort(port, reactor)
    wait(listening.stop())
    listening.set_open(True)
    assert port.getHost() == where
    wait(listening.stop())
