"""
The folder of an archive, and how files come into it.

    orders-0-00000000000000000000-00000000000000099999-100000-1a2b3c4d.parquet    what the manifest names
    _manifest/                                                                   see there
    _staged/                                                                     files that are whole, but not published
    _staged/.part-...                                                            files that are being written
    _reading/                                                                    files that are read; see `holding`

A task writes a file under a name of its own, and links it to its real name in `_staged` when it is on the disk. The
manifest that names it makes it part of the archive, and only then it is moved to where everybody looks. So a job that
is killed leaves files in `_staged` alone: the next one publishes those that the manifest names, takes over those that
are of its plan, and removes the others. Readers go by the manifest, and take a file from wherever it is.
"""

import errno
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kgateway.spark.archive.manifest import FOLDER, Manifest, Manifests
from kgateway.spark.archive.store import PART, Store, remove_all, store_of
from kgateway.spark.archive.tiles import SUFFIX
from kgateway.spark.remote_access import Access

STAGED = "_staged"


@dataclass(frozen=True, slots=True)
class Folder:
    """
    The archive of one topic.
    """

    path: PurePath
    access: Access = field(default_factory=Access)

    @property
    def is_here(self) -> bool:
        """
        Whether it is in a folder of this machine.
        """
        return isinstance(self.path, Path)

    @property
    def store(self) -> Store:
        """
        Where its files are.
        """
        return store_of(self.path, self.access)

    @property
    def manifests(self) -> Manifests:
        """
        What it has.
        """
        return Manifests(self.path / FOLDER, self.store)

    @property
    def staged(self) -> PurePath:
        """
        Where files are made.
        """
        return self.path / STAGED

    def staged_names(self) -> list[str]:
        """
        The files that are whole, but not published.
        """
        return [name for name in self.store.names(self.staged) if name.endswith(SUFFIX) and not name.startswith(PART)]

    def place(self, name: str) -> PurePath:
        """
        Where a file is. FileNotFoundError where it is not.
        """
        for path in (self.path / name, self.staged / name, self.path / name):  # it may be moved meanwhile
            if self.store.has(path):
                return path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path / name))

    def publish(self, manifest: Manifest) -> None:
        """
        Have in the folder what the manifest says. What others have taken the place of goes first, so that no record is
        there twice.
        """
        store = self.store
        remove_all(store, self.path, manifest.leaving)
        ready = {file.name for file in manifest.files} & set(self.staged_names())
        for name in sorted(ready):
            with suppress(FileNotFoundError):  # another job has done it
                store.move(self.staged / name, self.path / name)
        if ready or manifest.leaving:
            store.settle(self.path)

    def clean(self, keep: Collection[str]) -> None:
        """
        Remove what a job has left that was killed, but for these.
        """
        remove_all(self.store, self.staged, set(self.store.names(self.staged)).difference(keep))

    def strangers(self, manifest: Manifest) -> list[str]:
        """
        What readers of the folder would take for a part of the archive, and is none.
        """
        known = {file.name for file in manifest.files}
        return sorted(
            name for name in self.store.names(self.path) if name not in known and not name.startswith(("_", "."))
        )
