"""
The error for a folder that cannot be used, in words for its operator.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EEXIST, ENOSPC, ENOTDIR, EPERM, EROFS
from pathlib import Path

from kgateway.broker.base import BrokerMisplaced, BrokerUnusable

OTHER = "name an empty folder or a new one"
ANOTHER = "name another folder with --broker log:FOLDER"  # at a start
_RIGHTS = "let the user who runs kgateway read and write there"
_ROOM = "free some space on its disk"
_REMEDIES = {
    EACCES: _RIGHTS,
    EPERM: _RIGHTS,
    EROFS: "mount its file system read-write, or name another folder",
    EEXIST: f"it is a file, not a folder; {OTHER}",
    ENOTDIR: f"a file is where a folder should be; {OTHER}",
    ENOSPC: _ROOM,
    EDQUOT: _ROOM,
}


class FolderError(BrokerUnusable):
    """
    A folder cannot be used; the message says what is wrong, where, and what to do.
    """


class NotAFolder(FolderError, BrokerMisplaced):
    """
    A file is where the folder, or a folder around it, should be.
    """


@contextmanager
def refusing(path: Path, done: str = "opened") -> Iterator[None]:
    """
    Raise an OSError of the block as a FolderError about this file or folder.
    """
    try:
        yield
    except OSError as error:
        at = f" at {error.filename}" if error.filename and str(error.filename) != str(path) else ""
        remedy = _REMEDIES.get(error.errno or 0, "check its disk, or name another folder")
        kind = NotAFolder if error.errno in (EEXIST, ENOTDIR) else FolderError
        raise kind(f"{path} cannot be {done}: {error.strerror or error}{at}; {remedy}") from error
