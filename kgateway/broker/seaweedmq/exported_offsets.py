"""
Committed offsets as SeaweedFS's Go gateway keeps them, for its tools: a small file of JSON in the filer for each
partition of each group.

    /topics/kafka/.meta/consumer_offsets/GROUP/TOPIC/PARTITION/offset

They are written behind the commits, and nothing here reads them but once: a gateway that comes to a cluster without
groups of its own takes over what is there.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.layout import namespace_folder
from kgateway.broker.state_log import Snapshots, StateLog
from kgateway.cluster.partition import Appended
from kgateway.interfaces import IPartition, KeyValue, ProducerEpoch
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.codec import decode, encode
from kgateway.wire.malformed import Malformed

_BEHIND_S = 0.5
_FILE = "offset"
_KEY, _VALUE = (1).to_bytes(2, "big"), (4).to_bytes(2, "big")  # the kind of the row, and the version that is written
_KEY_VERSION = 0


class ExportedOffsets:
    """
    Those of one namespace.
    """

    _log = Logger()

    def __init__(
        self, seaweed: Seaweed, namespace: str, clock: IReactorTime, demand_ownership: Demand = demand_nothing
    ) -> None:
        self._seaweed = seaweed
        self._demand_ownership = demand_ownership
        self._folder = f"{namespace_folder(namespace)}/.meta/consumer_offsets"
        self._clock = clock
        self._changed: dict[bytes, bytes | None] = {}  # the last row of each key
        self._is_writing = False

    def note(self, records: Sequence[KeyValue]) -> None:
        """
        These rows were written; what they say of offsets goes into files soon.
        """
        self._changed |= {key: value for key, value in records if key.startswith(_KEY)}
        if self._changed and not self._is_writing:
            self._is_writing = True
            self._clock.callLater(_BEHIND_S, self._write_soon)

    async def found(self) -> list[tuple[str, KeyValue]]:
        """
        The groups that have files, and a row for each of these.
        """
        return [row async for row in self._below(self._folder)]

    def _write_soon(self) -> None:
        changed, self._changed = self._changed, {}
        Deferred.fromCoroutine(self._write(changed)).addErrback(self._unwritten).addCallback(self._written)

    async def _write(self, changed: dict[bytes, bytes | None]) -> None:
        filer = await self._seaweed.filer()
        for key, value in changed.items():
            path = self._path(decode(OffsetCommitKey, _KEY_VERSION, key[len(_KEY) :]))
            if path and value is None:
                await filer.delete(path, demand=self._demand_ownership)
            elif path and value:
                await filer.write(path, _as_json(value), self._demand_ownership)

    def _unwritten(self, failure: Failure) -> None:
        self._log.warn("offsets are not all in files for the Go gateway: {error}", error=failure.getErrorMessage())

    def _written(self, _: None) -> None:
        self._is_writing = False
        self.note([])

    def _path(self, key: OffsetCommitKey) -> str | None:
        """
        Where the file is; `None` for a group whose name is no path.
        """
        parts = key.group.split("/")
        if not all(parts) or {".", ".."} & {*parts}:
            return None
        return f"{self._folder}/{key.group}/{key.topic}/{key.partition}/{_FILE}"

    async def _below(self, folder: str) -> Any:
        filer = await self._seaweed.filer()
        for entry in await filer.all_entries(folder):
            path = f"{folder}/{entry.name}"
            if entry.is_directory:
                async for row in self._below(path):
                    yield row
            elif entry.name == _FILE:
                for row in self._row(path, await filer.content_of(path, entry)):
                    yield row

    def _row(self, path: str, content: bytes) -> Iterator[tuple[str, KeyValue]]:
        *group, topic, partition, _ = path.removeprefix(f"{self._folder}/").split("/")
        try:
            told = json.loads(content)
            key = OffsetCommitKey(group="/".join(group), topic=topic, partition=int(partition))
            value = OffsetCommitValue(
                offset=int(told["value"]),
                metadata=str(told.get("metadata", "")),
                commit_timestamp=int(told.get("committed_at", 0)),
            )
            row = _KEY + encode(key, _KEY_VERSION), _VALUE + encode(value, 4)
        except (ValueError, TypeError, LookupError, Malformed) as error:
            self._log.warn("{path} is left alone: {error}", path=path, error=error)
        else:
            yield key.group, row


class ExportingStateLog(StateLog):
    """
    The log of a coordinator of groups, which tells what it is given.
    """

    def __init__(
        self, partition: IPartition, snapshots: Snapshots, now_ms: Callable[[], int], exported: ExportedOffsets
    ) -> None:
        super().__init__(partition, snapshots, now_ms)
        self._exported = exported

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        appended = super().append(records, producer)
        self._exported.note(records)
        return appended


def _as_json(value: bytes) -> bytes:
    version = int.from_bytes(value[:2], "big")
    told = decode(OffsetCommitValue, version, value[2:])
    row = {"type": "offset", "value": told.offset, "committed_at": told.commit_timestamp, "metadata": told.metadata}
    return json.dumps(row).encode()
