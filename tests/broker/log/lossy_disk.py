"""
A disk in memory whose machine may lose power at any moment, and whose process may be killed.

Synced data survives. Of the rest a crash leaves a random part, within what POSIX allows: see `lossy_content` for the
content of files, `lossy_names` for names. There is no order between the two: a file that was renamed before it was
synced may be found short, or empty.

Chance is a `Random`, so a run can be repeated.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EEXIST, EIO, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY
from os import strerror
from pathlib import Path
from random import Random
from typing import TypeVar, cast

from kgateway.broker.log.files.disk import File, NotOpened
from kgateway.wire.types import Buffer
from tests.broker.log.lossy_content import Content
from tests.broker.log.lossy_names import Folder, Names, os_error

T = TypeVar("T")

_FOLDER_SIZE = 4096


class PowerLoss(BaseException):
    """
    The machine is off, or the process dead: no operation has an effect.
    """


class LossyFile:
    """
    An open file, whose content exists as long as it is open, whatever becomes of its name.
    """

    def __init__(self, disk: "LossyDisk", content: Content) -> None:
        self._disk = disk
        self._content = content
        self.size = len(content.visible)

    def append(self, buffers: Sequence[Buffer]) -> None:
        data, content = b"".join(buffers), self._content

        def whole() -> None:
            if len(content.visible) != self.size:
                raise AssertionError("this file is written through two handles")
            content.append(data)

        def in_part(why: BaseException) -> None:
            """
            Append as a write does that is cut off, possibly after all bytes; a failed write is undone.
            """
            failed = isinstance(why, OSError)
            content.append(data[: self._disk.chance.randint(0, max(len(data) - failed, 0))])
            if failed:
                content.truncate(self.size)

        self._disk.do("append", whole, in_part)
        self.size += len(data)

    def read(self, position: int, size: int) -> bytes:
        return self._disk.do("read", lambda: bytes(self._content.visible[position : position + size]))

    def read_into(self, buffer: memoryview, position: int) -> int:
        found = self.read(position, len(buffer))
        known = self._disk.chance.choice((len(found), len(found), 0, self._disk.chance.randint(0, len(found))))
        buffer[:known] = found[:known]
        return known

    def truncate(self, size: int) -> None:
        self._disk.do("truncate", lambda: self._content.truncate(size))
        self.size = size

    def sync(self) -> None:
        self.begin_sync()()

    def begin_sync(self) -> Callable[[], None]:
        """
        Begin a sync; the returned function ends it.
        """

        def in_part(why: BaseException) -> None:
            if isinstance(why, OSError):
                self._content.fail_sync()

        begun = self._content.begin_sync()
        return lambda: self._disk.do("sync", lambda: self._content.end_sync(begun), in_part)

    def write_again(self, position: int, size: int) -> None:
        self._disk.do("write_again", lambda: self._content.write_again(position, position + size))

    def write_early(self, position: int, size: int) -> None:
        self._disk.do("write_early", lambda: None)  # the simulation writes early at random anyhow

    def close(self) -> None:
        pass  # closing does not sync


class LossyDisk:
    """
    The disk from the start of the machine or process until its end.

    `meanwhile` is called before each operation, and while a sync runs: a test can do there what other threads do.
    """

    def __init__(self, chance: Random, names: Names | None = None) -> None:
        self.chance = chance
        self.done: Counter[str] = Counter()  # operations so far
        self.off = False
        self.meanwhile: Callable[[], None] = lambda: None
        self._names = names or Names()
        self._left: int | None = None  # operations until it is off
        self._faults: list[tuple[str, range, int]] = []

    def open(self, path: Path, *, create: bool = False) -> LossyFile:
        def effect() -> LossyFile:
            folder, name, node = self._names.place(path)
            if isinstance(node, Folder):
                raise os_error(EISDIR, path)
            if node is None:
                if not create:
                    raise os_error(ENOENT, path)
                node = Content()
                self._names.change((folder, name, node))
            return LossyFile(self, node)

        return self.do("open", effect)

    def read(self, path: Path) -> bytes:
        file = self.open(path)
        return file.read(0, file.size)

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        beside = path.with_name(f"{path.name}.{self.chance.getrandbits(32):x}.tmp")
        try:
            file = self.open(beside, create=True)
            file.append([data])
            if sync:
                file.sync()
            self.rename(beside, path)
        except OSError:
            with suppress(OSError):
                self.remove(beside)
            raise
        if sync:
            self.sync_folder(path.parent)

    def names(self, folder: Path) -> dict[str, int]:
        found = list(self.do("names", lambda: self._names.folder(folder)).visible.items())
        self.chance.shuffle(found)  # a folder has no order
        return {name: _FOLDER_SIZE if isinstance(node, Folder) else len(node.visible) for name, node in found}

    def changed_ms(self, path: Path) -> int:
        self.do("changed_ms", lambda: self._names.place(path))
        return 0  # nobody sets its clock

    def set_changed_ms(self, path: Path, changed_ms: int) -> None:
        self.do("set_changed_ms", lambda: self._names.place(path))

    def make_folder(self, folder: Path) -> None:
        def effect() -> None:
            for path in (*reversed(folder.parents[:-1]), folder):
                around, name, node = self._names.place(path)
                if isinstance(node, Content):
                    raise os_error(EEXIST, path)
                if node is None:
                    self._names.change((around, name, Folder()))

        self.do("make_folder", effect)

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """
        Sync the files at the same time; their syncs end in any order.
        """
        ends = [cast("LossyFile", file).begin_sync() for file in files]
        found: list[OSError | None] = [None] * len(ends)
        for number in self.chance.sample(range(len(ends)), len(ends)):
            try:
                ends[number]()
            except OSError as error:
                found[number] = error
        return found

    def sync_folder(self, folder: Path) -> None:
        try:
            opened = self.do("open_folder", lambda: self._names.folder(folder))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, str(folder)) from None
        self.do("sync_folder", lambda: self._names.sync(opened))

    def rename(self, old: Path, new: Path) -> None:
        def effect() -> None:
            (here, name, node), (there, new_name, taken) = self._names.place(old), self._names.place(new)
            if node is None:
                raise os_error(ENOENT, old)
            if isinstance(taken, Folder) and taken.visible:
                raise os_error(ENOTEMPTY, new)
            if taken and isinstance(node, Folder) != isinstance(taken, Folder):
                raise os_error(EISDIR if isinstance(taken, Folder) else ENOTDIR, new)
            if taken is not node:
                self._names.change((here, name, None), (there, new_name, node))

        self.do("rename", effect)

    def remove(self, path: Path) -> None:
        def effect() -> None:
            folder, name, node = self._names.place(path)
            if node is None:
                raise os_error(ENOENT, path)
            if isinstance(node, Folder) and node.visible:
                raise os_error(ENOTEMPTY, path)
            self._names.change((folder, name, None))

        self.do("remove", effect)

    def fail(self, name: str, number: int = 1, code: int = EIO, times: int = 1) -> None:
        """
        Make operations of this name fail, from the `number`th from now on, `times` in a row.
        """
        first = self.done[name] + number
        self._faults.append((name, range(first, first + times), code))

    def heal(self) -> None:
        self._faults.clear()

    def stop_after(self, operations: int) -> None:
        """
        Allow this many operations, and raise PowerLoss from then on. The first one to raise may have had its effect
        or not, a write in part.
        """
        self._left = operations

    def kill(self) -> "LossyDisk":
        """
        The disk that the next process finds: everything written is there, and no more of it durable than before.
        """
        self.off = True
        return LossyDisk(self.chance, self._names)

    def crash(self) -> "LossyDisk":
        """
        The disk that the machine finds when it is on again.
        """
        self.off = True
        return LossyDisk(self.chance, self._names.after_crash(self.chance))

    def do(self, name: str, effect: Callable[[], T], in_part: Callable[[BaseException], None] | None = None) -> T:
        """
        Run an operation: it succeeds, fails, or is too late. `in_part` has the effect of an interrupted one.
        """
        self._check_on()
        self.meanwhile()
        self._check_on()
        self.done[name] += 1
        why = self._why_not(name)
        if why is None:
            return effect()
        if in_part:
            in_part(why)
        elif self.off and self.chance.random() < 0.5:
            effect()
        raise why

    def _check_on(self) -> None:
        if self.off:
            raise PowerLoss

    def _why_not(self, name: str) -> BaseException | None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.off = True
                return PowerLoss()
        for failing, numbers, code in self._faults:
            if failing == name and self.done[name] in numbers:
                return OSError(code, strerror(code))
        return None
