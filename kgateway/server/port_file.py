"""
The file that tells other programs where the gateway listens: a line HOST:PORT for each listener, in the order given.
"""

import os
from collections.abc import Iterable
from contextlib import suppress

from kgateway.cluster.view import Address


class PortFile:
    """
    Written beside its place first, where a folder that is missing or a full disk still stop the start, and put there
    when clients can connect: whoever sees the file sees it whole.
    """

    def __init__(self, path: str, addresses: Iterable[Address]) -> None:
        self._path = path
        self._prepared = f"{path}.{os.getpid()}"
        with open(self._prepared, "w") as file:
            file.writelines(f"{address}\n" for address in addresses)
        os.chmod(self._prepared, 0o644)  # other users' programs read it; twistd gives new files to their owner alone

    def publish(self) -> None:
        """
        Put it in its place.
        """
        os.replace(self._prepared, self._path)

    def remove(self) -> None:
        """
        Take it away, wherever it is.
        """
        for path in (self._prepared, self._path):
            with suppress(FileNotFoundError):
                os.unlink(path)
