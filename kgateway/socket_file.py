"""
The file of a Unix socket that is a listener, and the lock that Twisted makes beside it.

    kafka.sock          the socket
    kafka.sock.lock     a link whose target is the number of the process that listens
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOTSOCK
from pathlib import Path


@contextmanager
def unix_socket_file(path: str) -> Iterator[None]:
    """
    While an attempt to listen there runs. OSError if something else has the name; if the attempt fails, the lock is
    removed, which Twisted leaves.
    """
    with suppress(FileNotFoundError, ValueError):  # a name with zero bytes is no file
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise OSError(ENOTSOCK, "it exists, and is not a socket", path)
    lock = Path(f"{path}.lock")
    before = _process(lock)
    try:
        yield
    except BaseException:
        if _process(lock) == os.getpid() != before:
            lock.unlink()
        raise


def _process(lock: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(lock.readlink().name)
    return None
