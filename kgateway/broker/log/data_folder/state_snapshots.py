"""
The last snapshot of a coordinator's state, a file in the folder of its partition: `kgateway.state-OFFSET`, record
batches one after the other, with the state after all records before that offset.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred

from kgateway.broker.log.runtime import LogRuntime
from kgateway.broker.state_log import Snapshot, is_whole, read_state, write_state
from kgateway.cluster.partition import EARLIEST_OFFSET

STATE = "kgateway.state-"
_FILE = re.compile(rf"{re.escape(STATE)}[0-9]{{20}}")


def is_state(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def state_offsets(names: Iterable[str]) -> list[int]:
    return [int(name.removeprefix(STATE)) for name in names if is_state(name)]


class FileSnapshots:
    def __init__(self, folder: Path, runtime: LogRuntime, sync_log: Callable[[], Deferred[None]]) -> None:
        self._folder = folder
        self._runtime = runtime
        self._sync_log = sync_log

    def load(self) -> Deferred[Snapshot]:
        return self._runtime.in_thread(self._load)

    def save(self, snapshot: Snapshot) -> Deferred[None]:
        return Deferred.fromCoroutine(self._save(snapshot))

    def _load(self) -> Snapshot:
        disk = self._runtime.files.disk
        for name in sorted(self._names(), reverse=True):
            data = disk.read(self._folder / name)
            if is_whole(data):
                return Snapshot(int(name.removeprefix(STATE)), read_state(data))
        return Snapshot(EARLIEST_OFFSET, [])

    async def _save(self, snapshot: Snapshot) -> None:
        written = list[bytes]()
        await self._runtime.in_turns(write_state(iter(snapshot.state), written))
        await self._sync_log()  # a snapshot must not have what the log can still lose
        path = self._folder / f"{STATE}{snapshot.offset:020d}"
        await self._runtime.in_thread(partial(self._put, path, b"".join(written)))

    def _put(self, path: Path, data: bytes) -> None:
        older = [name for name in self._names() if name != path.name]
        self._runtime.files.disk.write(path, data, sync=True)
        for name in older:
            with suppress(FileNotFoundError):
                self._runtime.files.disk.remove(self._folder / name)

    def _names(self) -> list[str]:
        return [name for name in self._runtime.files.disk.names(self._folder) if is_state(name)]
