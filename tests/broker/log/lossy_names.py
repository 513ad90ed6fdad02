"""
Folders and names on a machine that may lose power.

A journal has the changes of names that may be lost, in order. After a crash each folder has had the first few of its
changes; a change of two folders was made in both or in neither. A sync of a folder makes its changes durable, and
those that they build upon.
"""

from errno import ENOENT, ENOTDIR
from os import strerror
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.broker.log.lossy_content import Content


class Folder:
    """
    The names in a folder, as they are visible and as they are durable.
    """

    def __init__(self) -> None:
        self.visible: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = Content | Folder


class Change(NamedTuple):
    """
    An atomic change: in each of these folders the name got this node, or none.
    """

    entries: tuple[tuple[Folder, str, Node | None], ...]

    @property
    def folders(self) -> set[Folder]:
        return {folder for folder, _, _ in self.entries}

    def keep(self) -> None:
        for folder, name, node in self.entries:
            if node is None:
                folder.durable.pop(name, None)
            else:
                folder.durable[name] = node


class Names:
    """
    All names, from the root on.
    """

    def __init__(self, root: Folder | None = None) -> None:
        self._root = root or Folder()
        self._journal: list[Change] = []

    def folder(self, path: Path) -> Folder:
        node: Node | None = self._root
        for name in path.parts[1:]:
            node = node.visible.get(name) if isinstance(node, Folder) else None
            if node is None:
                raise os_error(ENOENT, path)
        if not isinstance(node, Folder):
            raise os_error(ENOTDIR, path)
        return node

    def place(self, path: Path) -> tuple[Folder, str, Node | None]:
        """
        The folder of a path, its name there, and its node.
        """
        folder = self.folder(path.parent)
        return folder, path.name, folder.visible.get(path.name)

    def change(self, *entries: tuple[Folder, str, Node | None]) -> None:
        for folder, name, node in entries:
            if node is None:
                del folder.visible[name]
            else:
                folder.visible[name] = node
        self._journal.append(Change(entries))

    def sync(self, folder: Folder) -> None:
        """
        Make the changes of this folder durable.
        """
        needed, sure, rest = {folder}, list[Change](), list[Change]()
        for change in reversed(self._journal):
            if change.folders & needed:
                needed |= change.folders
                sure.append(change)
            else:
                rest.append(change)
        for change in reversed(sure):
            change.keep()
        self._journal = rest[::-1]

    def after_crash(self, chance: Random) -> "Names":
        """
        Names that the machine may find after a crash.
        """
        ended, kept = set[Folder](), chance.choice((0.0, 0.5, 0.9, 1.0))
        for change in self._journal:
            if change.folders & ended or chance.random() >= kept:
                ended |= change.folders
            else:
                change.keep()
        return Names(_after_crash(self._root, chance))


def _after_crash(folder: Folder, chance: Random) -> Folder:
    found = Folder()
    for name, node in folder.durable.items():
        found.durable[name] = (
            _after_crash(node, chance) if isinstance(node, Folder) else Content(node.after_crash(chance))
        )
    found.visible = dict(found.durable)
    return found


def os_error(code: int, path: Path) -> OSError:
    """
    The system's error for a path.
    """
    return OSError(code, strerror(code), str(path))
