"""
Which archives there are in a folder.
"""

from pathlib import PurePath

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import FOLDER
from kgateway.spark.archive.store import store_of
from kgateway.spark.remote_access import Access


def is_archive(folder: Folder) -> bool:
    """
    Whether it is one.
    """
    return FOLDER in folder.store.folders(folder.path)


def archives_in(path: PurePath, access: Access) -> list[Folder]:
    """
    Those in a folder, by their names.
    """
    found = [Folder(path / name, access) for name in sorted(store_of(path, access).folders(path))]
    return [folder for folder in found if is_archive(folder)]
