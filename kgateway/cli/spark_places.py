"""
Where archives are, as it is said to the jobs of Spark: in a folder of this machine, or in one of a filer of SeaweedFS.
"""

from argparse import ArgumentTypeError, Namespace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kgateway.cli.refused import Refused
from kgateway.cli.spark_session import source_options
from kgateway.spark.remote_paths import url_path

if TYPE_CHECKING:
    from kgateway.spark.archive.folder import Folder
    from kgateway.spark.remote_access import Access

PLACE = "FOLDER|URL"
IN_A_FILER = "or http://HOST:PORT/PATH in a filer of SeaweedFS"

_LAST_PORT = 55_535  # of HTTP, if that of gRPC is 10,000 above


def place(text: str) -> PurePath:
    """
    The place that is written so.
    """
    if "://" not in text:
        return Path(text)
    try:
        path = url_path(text)
        port = urlsplit(path.origin).port or _LAST_PORT + 1
    except ValueError:
        port = _LAST_PORT + 1
    if port > _LAST_PORT:
        above = "whose gRPC is at PORT + 10000"
        raise ArgumentTypeError(f"{text} is neither a folder nor http://HOST:PORT/PATH in a filer, {above}")
    return path


def access(options: Namespace) -> "Access":
    """
    How a filer is asked.
    """
    from kgateway.spark.options import READ, Options
    from kgateway.spark.query import access_of

    return access_of(Options(source_options(options), READ))


def folder(options: Namespace, where: PurePath, topic: str) -> "Folder":
    """
    The archive of a topic, which may be there or not.
    """
    from kgateway.spark.archive.folder import Folder

    path = where / topic
    return Folder(path.absolute() if isinstance(path, Path) else path, access(options))


def archived(options: Namespace, where: PurePath) -> list[str]:
    """
    The topics whose archives are there.
    """
    from kgateway.spark.archive.finding import archives_in

    found = [one.path.name for one in archives_in(where, access(options))]
    if not found:
        raise Refused(f"there is no archive in {where}")
    return found
