"""
The open files of the log: those used last, because there are more files than descriptors.

A file that a thread uses is kept open until it is done, whatever is opened meanwhile. The cache itself is used by one
thread.
"""

from collections import OrderedDict, defaultdict
from pathlib import Path

from kgateway.broker.log.files.disk import Disk, File


class FileCache:
    """
    Keeps files open, and closes those that were not used for the longest time.
    """

    def __init__(self, disk: Disk, limit: int) -> None:
        self.disk = disk
        self._limit = limit
        self._files: OrderedDict[Path, File] = OrderedDict()  # the one used last comes last
        self._paths_by_folder: defaultdict[Path, set[Path]] = defaultdict(set)
        self._holders: dict[int, int] = {}  # how many hold a file, by its id
        self._retired: set[int] = set()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: Path, *, create: bool = False) -> File:
        """
        The open file, to be used before anything else is opened.
        """
        if create:
            self.close(path)  # the open file of this name is not the one to be created
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self.disk.open(path, create=create)
            self._paths_by_folder[path.parent].add(path)
            if len(self._files) > self._limit:
                self._close_oldest()
        else:
            self._files.move_to_end(path)
        return file

    def hold(self, path: Path) -> File:
        """
        The open file, which is kept open until it is released.
        """
        file = self.get(path)
        self._holders[id(file)] = self._holders.get(id(file), 0) + 1
        return file

    def release(self, file: File) -> None:
        self._holders[id(file)] -= 1
        if not self._holders[id(file)]:
            del self._holders[id(file)]
            if id(file) in self._retired:
                self._retired.discard(id(file))
                file.close()

    def close(self, path: Path) -> None:
        """
        Close the file, if it is open, once nobody holds it; the next one to ask for this path gets a new one.
        """
        if path in self._files:
            file = self._take_out(path)
            if id(file) in self._holders:
                self._retired.add(id(file))
            else:
                file.close()

    def close_in(self, folder: Path) -> None:
        for path in list(self._paths_by_folder.get(folder, ())):
            self.close(path)

    def close_all(self) -> None:
        for path in list(self._files):
            self.close(path)

    def _close_oldest(self) -> None:
        newest = next(reversed(self._files))
        for path, file in self._files.items():
            if id(file) not in self._holders and path != newest:
                self._take_out(path).close()
                return

    def _take_out(self, path: Path) -> File:
        siblings = self._paths_by_folder[path.parent]
        siblings.discard(path)
        if not siblings:
            del self._paths_by_folder[path.parent]
        return self._files.pop(path)
