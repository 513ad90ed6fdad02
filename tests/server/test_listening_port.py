"""
A listening port that is closed and reopened.
"""

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.tcp import Server

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


def test_the_representation_of_a_client_is_made_when_it_is_needed() -> None:
    """
    It would take a twentieth of the memory of an idle connection.
    """
    accepted: Deferred[Protocol] = Deferred()

    class Accepted(Protocol):
        def connectionMade(self) -> None:
            accepted.callback(self)

    port = reactor.listenTCP(0, Factory.forProtocol(Accepted), interface="127.0.0.1")
    listening = ListeningPort(port, reactor)
    connect = connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port), Protocol())
    client, server = wait(connect), wait(accepted)
    assert isinstance(server.transport, Server)
    assert "repstr" not in vars(server.transport)
    assert repr(server.transport) == "<Accepted,0,127.0.0.1>"
    client.transport.abortConnection()
    server.transport.abortConnection()
    wait(listening.stop())
