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


def test_a_client_has_no_texts_for_the_log() -> None:
    """
    They would take a tenth of the memory of an idle connection. They are made when they are logged.
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
    assert not {"logstr", "repstr"} & set(vars(server.transport))
    assert server.transport.logPrefix() == "Connection,0,127.0.0.1"
    assert repr(server.transport) == "<Connection,0,127.0.0.1>"
    client.transport.abortConnection()
    server.transport.abortConnection()
    wait(listening.stop())
