"""
A lock that one process has at a time, for as long as the process renews it: a file in the filer that decides.

    {"owner": "kgateway-1@gw1", "process": "5a0c...", "number": 17, "identity": ["gw1", "e1679c02-...", ...]}

The owner replaces the file at each renewal, and releases the lock by replacing it once more, with no owner in it.
Another process may take the lock when it has seen one version of the file for as long as a lock lasts. It then replaces
this version: of several that do so, the owner among them, one succeeds. When the filer has not answered, it waits anew,
so that the owner can renew the lock first.

A process that can prove that the owner has ended need not wait; only a process on the same machine can
(process_identity.py). A renewal that the owner has sent before its end does no harm: if it comes first, the other
process has to replace this version instead; if it comes later, the filer refuses it.

No clock is compared with another one. The time of an owner begins before it asks for a renewal, that of all others when
they see the renewal. So after an end that is not proven, each process waits for that long before it can get the lock.

SeaweedFS's own locks would not do. They are in the memory of filers, each lock at one that is chosen by a hash ring. A
filer that joins gives locks away that others hold, and one that hangs keeps its locks from being renewed.
"""

import json
from typing import NamedTuple
from uuid import uuid4

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.process_identity import ProcessIdentity, own_identity
from kgateway.broker.seaweed.protos.filer_pb2 import Entry

_CALL_S = 5.0


class _LockFile(NamedTuple):
    owner: str = ""  # nobody has the lock
    process: str = ""
    number: int = 0
    identity: ProcessIdentity | None = None  # of the owner, if its system can tell

    @classmethod
    def read(cls, path: str, entry: Entry) -> "_LockFile":
        try:
            found = cls(**json.loads(entry.content))
            return found._replace(identity=found.identity and ProcessIdentity(*found.identity))
        except (ValueError, TypeError, RecursionError) as error:
            raise FilerRefused(path, f"it is not the file of a lock: {error}") from error

    def encoded(self) -> bytes:
        return json.dumps(self._asdict()).encode()


class FilerLock:
    def __init__(self, filer: Filer, path: str, owner: str, seconds: float, clock: IReactorTime) -> None:
        self.holder = ""  # as far as the last answer tells
        self._filer = filer
        self._path = path
        self._owner = owner
        self._seconds = seconds
        self._clock = clock
        self._process = uuid4().hex
        self._identity = own_identity()
        self._number = 0
        self._is_ours = False  # unless another process has taken it since
        self._seen = _LockFile(), 0.0  # a version of the file that is another process's, and since when

    @property
    def waits_s(self) -> float:
        """
        The time until the lock expires, if its holder does not renew it.
        """
        return max(0.0, self._seen[1] + self._seconds - self._clock.seconds())

    @property
    def holder_has_ended(self) -> bool:
        """
        Whether it is proven that the process has ended that had the lock when the filer was asked last.
        """
        return _has_ended(self._seen[0])

    async def take(self) -> bool:
        """
        Take or renew the lock. Returns whether it is ours now; raises RpcError or FilerRefused if that is unknown. A
        lock that another process has had meanwhile is not ours any more, even if it is free again.
        """
        asked = self._clock.seconds()
        try:
            entry, found = await self._read()
        except (RpcError, FilerRefused):
            self._seen = _LockFile(), 0.0  # perhaps the owner could not renew it either
            raise
        if self._is_ours and found.process != self._process:
            self._is_ours = False
        elif found.process == self._process or not found.owner or self._has_expired(found, asked):
            is_ours = await self._replace(entry, self._owner)
            found = found._replace(owner=self._owner) if is_ours else await self._winner()
            self._is_ours = is_ours
        self.holder = found.owner
        return self._is_ours

    async def give_back(self) -> None:
        if self._is_ours:
            self._is_ours = False
            entry, found = await self._read()
            if found.process == self._process:
                await self._replace(entry, "")

    async def _winner(self) -> _LockFile:
        """
        What another process has written meanwhile.
        """
        _, found = await self._read()
        if found.process == self._process:
            raise RpcError(Status.ABORTED, f"{self._path}: a call of this process that was not answered came late")
        return found

    async def _read(self) -> tuple[Entry | None, _LockFile]:
        entry = await self._filer.entry(self._path, _CALL_S)
        return entry, _LockFile.read(self._path, entry) if entry else _LockFile()

    def _has_expired(self, found: _LockFile, asked: float) -> bool:
        """
        Whether this version of the file, which is another process's, had been seen for long enough when the filer was
        asked, or is that of a process that has ended. While a filer is slow to answer, the owner cannot renew the lock
        either.
        """
        if found != self._seen[0]:
            self._seen = found, self._clock.seconds()
        return asked >= self._seen[1] + self._seconds or _has_ended(found)

    async def _replace(self, entry: Entry | None, owner: str) -> bool:
        self._number += 1
        new = self._filer.versioned_file(_LockFile(owner, self._process, self._number, self._identity).encoded())
        if entry is None:
            return await self._filer.create_here(self._path, new, _CALL_S)
        return await self._filer.replace_here(self._path, new, entry, _CALL_S)


def _has_ended(found: _LockFile) -> bool:
    return found.identity is not None and found.identity.has_ended()
