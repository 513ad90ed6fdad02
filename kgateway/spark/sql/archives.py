"""
Which archives a query has at hand, as people name them.
"""

from collections.abc import Iterable
from pathlib import Path, PurePath

from kgateway.spark.archive.finding import archives_in, is_archive
from kgateway.spark.archive.folder import Folder
from kgateway.spark.failures import WrongOption
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_paths import url_path


def archives_of(given: Iterable[str], access: Access) -> dict[str, Folder]:
    """
    The archives by topic: of TOPIC=FOLDER, of a folder that is an archive, or of one that has some.
    """
    found: dict[str, Folder] = {}
    for text in given:
        for topic, folder in _named(text, access):
            known = found.setdefault(topic, folder)
            if known != folder:
                raise WrongOption(
                    f"there are two archives of topic {topic}, {known.path} and {folder.path}: leave one of them out"
                )
    return found


def _named(text: str, access: Access) -> list[tuple[str, Folder]]:
    topic, equals, path = text.partition("=")
    if equals and "/" not in topic and not Path(text).exists():
        folder = Folder(_path(path), access)
        if not is_archive(folder):
            raise WrongOption(f"there is no archive in {path}")
        return [(topic, folder)]
    folder = Folder(_path(text), access)
    if is_archive(folder):
        return [_with_topic(folder)]
    inside = archives_in(folder.path, access)
    if not inside:
        raise WrongOption(f"there is no archive in {text}")
    return [_with_topic(one) for one in inside]


def _path(text: str) -> PurePath:
    if "://" not in text:
        return Path(text).absolute()
    try:
        return url_path(text)
    except ValueError as error:
        raise WrongOption(f"there is no archive in {text}: {error}") from None


def _with_topic(folder: Folder) -> tuple[str, Folder]:
    manifest = folder.manifests.newest()
    return (manifest.identity.topic if manifest else folder.path.name), folder
