"""
The folder of an archive, and how files get into it.

    orders-0-00000000000000000000-00000000000000099999-100000-1a2b3c4d.parquet    named by the manifest
    _manifest/                                                                   see `manifest`
    _staged/                                                                     complete files, not published yet
    _staged/.part-...                                                            files that are being written
    _reading/                                                                    see `reader_lease`

A task writes a file under a name of its own, and links it to its final name in `_staged` when it is on the disk. The
manifest that names the file makes it part of the archive, and only then is it moved to where everybody looks. So a
killed job leaves files in `_staged` only: the next job publishes those that the manifest names, keeps those that the
plan covers, and removes the others. Readers follow the manifest, and find a file in either place.
"""

import errno
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kgateway.spark.archive.manifest import FOLDER, SUFFIX, Manifest, Manifests
from kgateway.spark.archive.store import PART, Store, remove_all, store_of
from kgateway.spark.http.client import Access

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
        Whether the archive is on the local machine.
        """
        return isinstance(self.path, Path)

    @property
    def store(self) -> Store:
        return store_of(self.path, self.access)

    @property
    def manifests(self) -> Manifests:
        return Manifests(self.path / FOLDER, self.store)

    @property
    def staged(self) -> PurePath:
        return self.path / STAGED

    def staged_names(self) -> list[str]:
        """
        The files that are complete, but not published.
        """
        return [name for name in self.store.names(self.staged) if name.endswith(SUFFIX) and not name.startswith(PART)]

    def find(self, name: str) -> PurePath:
        """
        The path of a file; FileNotFoundError if it is missing.
        """
        for path in (self.path / name, self.staged / name, self.path / name):  # it may be moved meanwhile
            if self.store.has(path):
                return path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path / name))

    def publish(self, manifest: Manifest) -> None:
        """
        Make the folder match the manifest. Files that have been replaced are removed first, so that no record is there
        twice.
        """
        store = self.store
        remove_all(store, self.path, manifest.leaving)
        ready = {file.name for file in manifest.files} & set(self.staged_names())
        for name in sorted(ready):
            with suppress(FileNotFoundError):  # another job has moved it
                store.move(self.staged / name, self.path / name)
        if ready or manifest.leaving:
            store.sync(self.path)

    def clean(self, keep: Collection[str]) -> None:
        """
        Remove what a killed job has left, except these files.
        """
        remove_all(self.store, self.staged, set(self.store.names(self.staged)).difference(keep))

    def strangers(self, manifest: Manifest) -> list[str]:
        """
        Files that readers would take for a part of the archive although the manifest does not name them.
        """
        known = {file.name for file in manifest.files}
        return sorted(
            name for name in self.store.names(self.path) if name not in known and not name.startswith(("_", "."))
        )


def is_archive(folder: Folder) -> bool:
    return FOLDER in folder.store.folders(folder.path)


def archives_in(path: PurePath, access: Access) -> list[Folder]:
    found = [Folder(path / name, access) for name in sorted(store_of(path, access).folders(path))]
    return [folder for folder in found if is_archive(folder)]
