"""
The folder of an archive, and how files come into it.

    orders-0-00000000000000000000-00000000000000099999-100000-1a2b3c4d.parquet    what the manifest names
    _manifest/                                                                   see there
    _staged/                                                                     files that are whole, but not published
    _staged/.part-...                                                            files that are being written

A task writes a file under a name of its own, and links it to its real name in `_staged` when it is on the disk. The
manifest that names it makes it part of the archive, and only then it is moved to where everybody looks. So a job that
is killed leaves files in `_staged` alone: the next one publishes those that the manifest names, takes over those that
are of its plan, and removes the others. Readers go by the manifest, and take a file from wherever it is.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kgateway.spark.archive.manifest import FOLDER, Manifest, Manifests, sync_folder
from kgateway.spark.archive.tiles import SUFFIX

STAGED = "_staged"
PART = ".part-"


@dataclass(frozen=True, slots=True)
class Folder:
    """
    The archive of one topic.
    """

    path: Path

    @property
    def manifests(self) -> Manifests:
        """
        What it has.
        """
        return Manifests(self.path / FOLDER)

    @property
    def staged(self) -> Path:
        """
        Where files are made.
        """
        return self.path / STAGED

    def staged_names(self) -> list[str]:
        """
        The files that are whole, but not published.
        """
        return [name for name in _names(self.staged) if name.endswith(SUFFIX) and not name.startswith(PART)]

    def place(self, name: str) -> Path:
        """
        Where a file is. FileNotFoundError where it is not.
        """
        for path in (self.path / name, self.staged / name, self.path / name):  # it may be moved meanwhile
            if path.exists():
                return path
        raise FileNotFoundError(self.path / name)

    def publish(self, manifest: Manifest) -> None:
        """
        Have in the folder what the manifest says. What others have taken the place of goes first, so that no record is
        there twice.
        """
        for name in manifest.leaving:
            with suppress(FileNotFoundError):
                os.unlink(self.path / name)
        ready = {file.name for file in manifest.files} & set(self.staged_names())
        for name in sorted(ready):
            with suppress(FileNotFoundError):  # another job has done it
                os.replace(self.staged / name, self.path / name)
        if ready or manifest.leaving:
            sync_folder(self.path)

    def clean(self, keep: Collection[str]) -> None:
        """
        Remove what a job has left that was killed, but for these.
        """
        for name in set(_names(self.staged)).difference(keep):
            with suppress(FileNotFoundError):
                os.unlink(self.staged / name)

    def strangers(self, manifest: Manifest) -> list[str]:
        """
        What readers of the folder would take for a part of the archive, and is none.
        """
        known = {file.name for file in manifest.files}
        return sorted(name for name in _names(self.path) if name not in known and not name.startswith(("_", ".")))


def _names(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
