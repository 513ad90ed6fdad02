"""
The last snapshot of a coordinator's state, as a file in the filer beside the chain of its log: `snapshot-OFFSET`.
"""

import re
from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.state_file import is_whole, read_state, write_state
from kgateway.broker.state_log import Snapshot
from kgateway.cluster.partition import EARLIEST_OFFSET

_NAME = re.compile("snapshot-([0-9]{20})")


class FilerSnapshots:
    """
    Those of one partition. Once one is there, `saved` is told what the log need not have any more.
    """

    def __init__(
        self,
        seaweed: Seaweed,
        folder: str,
        in_turns: Cooperator,
        saved: Callable[[int], Awaitable[None]],
    ) -> None:
        self._seaweed = seaweed
        self._folder = folder
        self._in_turns = in_turns
        self._saved = saved

    def load(self) -> Deferred[Snapshot]:
        return Deferred.fromCoroutine(self._load())

    def save(self, snapshot: Snapshot) -> Deferred[None]:
        return Deferred.fromCoroutine(self._save(snapshot))

    async def _load(self) -> Snapshot:
        for offset, name, size in reversed(await self._names()):
            data = await (await self._seaweed.filer()).files.read(f"{self._folder}/{name}", 0, size)
            if is_whole(data):
                return Snapshot(offset, read_state(data))
        return Snapshot(EARLIEST_OFFSET, [])

    async def _save(self, snapshot: Snapshot) -> None:
        written: list[bytes] = []
        await self._in_turns.coiterate(write_state(iter(snapshot.state), written))
        name = f"snapshot-{snapshot.offset:020d}"
        await (await self._seaweed.filer()).files.put(f"{self._folder}/{name}", b"".join(written))
        for _, older, _ in await self._names():
            if older < name:
                await (await self._seaweed.filer()).delete(f"{self._folder}/{older}")
        await self._saved(snapshot.offset)

    async def _names(self) -> list[tuple[int, str, int]]:
        """
        What is there, oldest first: its offset, name and size.
        """
        found = [
            (_NAME.fullmatch(entry.name), entry)
            for entry in await (await self._seaweed.filer()).all_entries(self._folder)
        ]
        return sorted((int(match[1]), entry.name, entry.attributes.file_size) for match, entry in found if match)
