"""
The file that tells other programs where the gateway listens: a line HOST:PORT for each listener, in the order given.
"""

import os
from collections.abc import Iterable

from kgateway.cluster.view import Address


def write_port_file(path: str, addresses: Iterable[Address]) -> None:
    """
    Put the addresses there, all or nothing: whoever sees the file sees them whole.
    """
    unfinished = f"{path}.{os.getpid()}"
    with open(unfinished, "w") as file:
        file.writelines(f"{address}\n" for address in addresses)
    os.replace(unfinished, path)
