"""
Addresses as clients are told them.
"""

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress

from kgateway.cluster.view import Address

NOWHERE = Address("localhost", 0)  # of a socket that is no TCP socket: such a listener needs --advertise


def address_of(address: IAddress) -> Address:
    """
    Host and port of a socket.
    """
    if isinstance(address, IPv4Address | IPv6Address):
        return Address(address.host, address.port)
    return NOWHERE
