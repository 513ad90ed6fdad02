"""
Paths of what is behind HTTP.
"""

from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

SCHEMES = ("http", "https")


class UrlPath(PurePosixPath):
    """
    A URL that other paths are joined to as to any folder. Names in it are as they are, not as URLs write them.
    """

    @property
    def origin(self) -> str:
        """
        The server, with its scheme.
        """
        scheme, server = self.parts[:2]
        return f"{scheme}//{server}"

    @property
    def target(self) -> str:
        """
        What the server is asked for.
        """
        return quote("/" + "/".join(self.parts[2:]))

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def is_url(text: str) -> bool:
    """
    Whether this names something behind HTTP.
    """
    return urlsplit(text).scheme.lower() in SCHEMES


def url_path(text: str) -> UrlPath:
    """
    The path that is written so; ValueError where none is.
    """
    parts = urlsplit(text)
    if not is_url(text) or not parts.hostname or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{text!r} is no http://HOST:PORT/PATH")
    _ = parts.port  # refuses what is no number
    return UrlPath(f"{parts.scheme}:", parts.netloc, *unquote(parts.path).strip("/").split("/"))
