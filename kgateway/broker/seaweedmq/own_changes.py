"""
Topics that are being changed by this gateway: one request at a time changes one, and what a filer tells of it meanwhile
is no news.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kgateway.broker.lone import being_changed


class OwnChanges:
    """
    By the names of topics.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """
        Nobody else changes the topic meanwhile.
        """
        if name in self._names:
            raise being_changed(name)
        self._names.add(name)
        try:
            yield
        finally:
            self._names.discard(name)
