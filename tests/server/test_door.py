"""
A port of the system that is shut and opened again.
"""

from twisted.internet.protocol import Factory

from kgateway.server.door import Door
from tests.broker.seaweed.running import reactor, wait


def test_a_port_that_the_system_has_chosen_is_the_same_again() -> None:
    """
    Clients have been told of it.
    """
    port = reactor.listenTCP(0, Factory(), interface="127.0.0.1")
    where, door = port.getHost(), Door(port, reactor)
    wait(door.stop())
    door.let_be_open(True)
    assert port.getHost() == where
    wait(door.stop())
