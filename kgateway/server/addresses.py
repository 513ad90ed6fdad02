"""
The addresses of listeners: those they are bound to, those that clients are given, and the file for other programs.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from errno import EISDIR
from functools import lru_cache

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress

from kgateway.cluster.view import Address
from kgateway.config.settings import Settings

NOWHERE = Address("localhost", 0)  # for sockets that are not TCP: such a listener needs --advertise
_EVERYWHERE = {"0.0.0.0", "::"}
_SHARED_MAX = 64  # few machines have more addresses


def address_of(address: IAddress) -> Address:
    if isinstance(address, IPv4Address | IPv6Address):
        return Address(address.host, address.port)
    return NOWHERE


@lru_cache(_SHARED_MAX)
def shared(address: Address) -> Address:
    """
    The same object for equal addresses: the connections to a listener need only one.
    """
    return address


def advertised(settings: Settings) -> dict[str, Address]:
    """
    The addresses that clients are given, wherever they connected, by listener.
    """
    return {each.name: Address(each.host, each.port) for each in settings.advertise}


def reachable(settings: Settings, bound: Iterable[Address]) -> dict[str, Address]:
    """
    The addresses at which clients reach the listeners, as far as they are known. `bound` has the sockets of the
    listeners.
    """
    listening = {listener.name: address for listener, address in zip(settings.listen, bound, strict=True)}
    known = {name: at for name, at in listening.items() if at != NOWHERE and at.host not in _EVERYWHERE}
    return {**known, **advertised(settings)}


class PortFile:
    """
    The file of `--port-file`: a line HOST:PORT for each listener, in the order given. It is written under another name
    first, so that a missing folder or a full disk stops the start, and renamed when clients can connect, so that nobody
    reads half of it. OSError if it cannot be written.
    """

    def __init__(self, path: str, addresses: Iterable[Address]) -> None:
        if os.path.isdir(path):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
        self._path = path
        self._written = f"{path}.{os.getpid()}"
        try:
            with open(self._written, "w") as file:
                file.writelines(f"{address}\n" for address in addresses)
            # Programs of other users read it, and twistd's umask leaves new files to their owner alone.
            os.chmod(self._written, 0o644)
        except OSError:
            self.remove()
            raise

    def publish(self) -> None:
        os.replace(self._written, self._path)
        self._written = self._path

    def remove(self) -> None:
        """
        Remove what was written: a file that was there before may be that of another gateway.
        """
        with suppress(OSError):
            os.unlink(self._written)
