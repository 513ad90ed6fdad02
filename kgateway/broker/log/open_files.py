"""
The files of the log that are open just now: those used last, for there are more files than descriptors.

What a thread is busy with stays open until it is done, whatever is opened meanwhile. All else happens in one thread.
"""

from collections import OrderedDict, defaultdict
from pathlib import Path

from kgateway.broker.log.disk import Disk, File


class OpenFiles:
    """
    Opens files where they are not open, and closes those that were not used for the longest time.
    """

    def __init__(self, disk: Disk, limit: int) -> None:
        self.disk = disk
        self._limit = limit
        self._files: OrderedDict[Path, File] = OrderedDict()  # the one used last is last
        self._in: defaultdict[Path, set[Path]] = defaultdict(set)  # those of a folder
        self._holders: dict[int, int] = {}  # how many, by the id of the file
        self._retired: set[int] = set()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: Path, *, create: bool = False) -> File:
        """
        The open file, to be used before anything else is opened.
        """
        if create:
            self.close(path)  # what is open under this name is not what is to be made
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self.disk.open(path, create=create)
            self._in[path.parent].add(path)
            if len(self._files) > self._limit:
                self._close_oldest()
        else:
            self._files.move_to_end(path)
        return file

    def hold(self, path: Path) -> File:
        """
        The open file, which stays open until it is let go.
        """
        file = self.get(path)
        self._holders[id(file)] = self._holders.get(id(file), 0) + 1
        return file

    def let_go(self, file: File) -> None:
        """
        The other end of `hold`.
        """
        self._holders[id(file)] -= 1
        if not self._holders[id(file)]:
            del self._holders[id(file)]
            if id(file) in self._retired:
                self._retired.discard(id(file))
                file.close()

    def close(self, path: Path) -> None:
        """
        Close it, if it is open, as soon as nobody is busy with it; whoever asks for this path now gets another.
        """
        if path in self._files:
            file = self._take_out(path)
            if id(file) in self._holders:
                self._retired.add(id(file))
            else:
                file.close()

    def close_in(self, folder: Path) -> None:
        """
        Close all that is in a folder.
        """
        for path in list(self._in.get(folder, ())):
            self.close(path)

    def close_all(self) -> None:
        """
        Close what is open.
        """
        for path in list(self._files):
            self.close(path)

    def _close_oldest(self) -> None:
        newest = next(reversed(self._files))
        for path, file in self._files.items():
            if id(file) not in self._holders and path != newest:
                self._take_out(path).close()
                return

    def _take_out(self, path: Path) -> File:
        beside = self._in[path.parent]
        beside.discard(path)
        if not beside:
            del self._in[path.parent]
        return self._files.pop(path)
