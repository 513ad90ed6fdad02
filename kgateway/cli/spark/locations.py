"""
Locations of archives, which are local folders or folders of a SeaweedFS filer, and of results.
"""

from argparse import ArgumentTypeError, Namespace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kgateway.cli.common.errors import CommandError
from kgateway.cli.spark.session import source_options
from kgateway.spark.http.client import url_path

if TYPE_CHECKING:
    from kgateway.spark.archive.folder import Folder
    from kgateway.spark.http.client import Access

LOCATION = "FOLDER|URL"
IN_A_FILER = "or http://HOST:PORT/PATH in a filer of SeaweedFS"

_LAST_PORT = 55_535  # of HTTP, if that of gRPC is 10,000 above


def location(text: str) -> PurePath:
    if "://" not in text:
        if Path(text).exists() and not Path(text).is_dir():
            raise ArgumentTypeError(f"{text} is not a folder")
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


def check_new_file(path: Path, *, overwrite: bool | None = None) -> None:
    """
    CommandError if a result cannot be written to this path. `overwrite` is that option of the command, if it has one.
    """
    if path.exists() and not overwrite:
        raise CommandError(f"{path} already exists" + ("" if overwrite is None else "; --overwrite replaces it"))
    if not path.absolute().parent.is_dir():
        raise CommandError(f"there is no folder {path.parent} for {path.name}")


def access(options: Namespace) -> "Access":
    """
    The security settings for filers, from the options.
    """
    from kgateway.spark.options import READ, Options
    from kgateway.spark.query import access_of

    return access_of(Options(source_options(options), READ))


def archive_of(options: Namespace, where: PurePath, topic: str) -> "Folder":
    from kgateway.spark.archive.folder import Folder

    path = where / topic
    return Folder(path.absolute() if isinstance(path, Path) else path, access(options))


def archived_topics(options: Namespace, where: PurePath) -> list[str]:
    from kgateway.spark.archive.folder import archives_in

    found = [one.path.name for one in archives_in(where, access(options))]
    if not found:
        raise CommandError(f"there is no archive in {where}")
    return found
