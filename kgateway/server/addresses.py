"""
Addresses as clients are told them.
"""

from collections.abc import Iterable

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress

from kgateway.cluster.view import Address
from kgateway.config.settings import Settings

NOWHERE = Address("localhost", 0)  # of a socket that is no TCP socket: such a listener needs --advertise
_EVERYWHERE = {"0.0.0.0", "::"}


def address_of(address: IAddress) -> Address:
    """
    Host and port of a socket.
    """
    if isinstance(address, IPv4Address | IPv6Address):
        return Address(address.host, address.port)
    return NOWHERE


def advertised(settings: Settings) -> dict[str, Address]:
    """
    What clients are told whatever they connect to, by listener.
    """
    return {each.name: Address(each.host, each.port) for each in settings.advertise}


def reached(settings: Settings, bound: Iterable[Address]) -> dict[str, Address]:
    """
    Where clients that are not connected reach the listeners, as far as that is known; `bound` is where they listen.
    """
    listening = {listener.name: address for listener, address in zip(settings.listen, bound, strict=True)}
    known = {name: at for name, at in listening.items() if at != NOWHERE and at.host not in _EVERYWHERE}
    return {**known, **advertised(settings)}
