"""
Committed offsets as SeaweedFS's Go gateway keeps them: a small file of JSON in the filer for each partition of each
group.

    /topics/kafka/.meta/consumer_offsets/GROUP/TOPIC/PARTITION/offset
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from twisted.logger import Logger

from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.layout import namespace_folder
from kgateway.interfaces import KeyValue
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.codec import decode, encode
from kgateway.wire.malformed import Malformed

_FILE = "offset"
_KEY, _VALUE = (1).to_bytes(2, "big"), (4).to_bytes(2, "big")  # the kind of the row, and the version that is written
_KEY_VERSION = 0


class OffsetFiles:
    """
    Those of one namespace, as rows of the coordinator.
    """

    _log = Logger()

    def __init__(self, seaweed: Seaweed, namespace: str, demand_ownership: Demand = demand_nothing) -> None:
        self._seaweed = seaweed
        self._folder = f"{namespace_folder(namespace)}/.meta/consumer_offsets"
        self._demand_ownership = demand_ownership  # called before each attempt to write

    async def write(self, key: bytes, value: bytes | None) -> None:
        """
        Let the file say what the row says; no value, no file.
        """
        path = self._path(key)
        if path is None:
            return
        filer = await self._seaweed.filer()
        if value is None:
            await filer.delete(path, demand=self._demand_ownership)
        else:
            await filer.write(path, _as_json(value), self._demand_ownership)

    async def catch_up(self, key: bytes, value: bytes) -> None:
        """
        Let the file say what the row says, unless somebody has committed later.
        """
        path = self._path(key)
        entry = path and await (await self._seaweed.filer()).entry(path)
        if not (entry and _is_covered(value, entry.content)):
            await self.write(key, value)

    async def found(self) -> list[tuple[str, KeyValue]]:
        """
        The groups that have files, and a row for each of these.
        """
        return [row async for row in self._below(self._folder)]

    def _path(self, key: bytes) -> str | None:
        """
        Where the file is; `None` for a group whose name is no path.
        """
        told = decode(OffsetCommitKey, _KEY_VERSION, key[len(_KEY) :])
        parts = told.group.split("/")
        if not all(parts) or {".", ".."} & {*parts}:
            return None
        return f"{self._folder}/{told.group}/{told.topic}/{told.partition}/{_FILE}"

    async def _below(self, folder: str) -> AsyncIterator[tuple[str, KeyValue]]:
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
            told: Any = json.loads(content)
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


def is_offset(key: bytes) -> bool:
    """
    Whether a row of a coordinator is that of a committed offset.
    """
    return key.startswith(_KEY)


def _is_covered(value: bytes, content: bytes) -> bool:
    """
    Whether a file says what the row says, or something later.
    """
    if content == _as_json(value):
        return True
    try:
        return int(json.loads(content)["committed_at"]) > _told(value).commit_timestamp
    except (ValueError, TypeError, LookupError):
        return False


def _told(value: bytes) -> OffsetCommitValue:
    return decode(OffsetCommitValue, int.from_bytes(value[:2], "big"), value[2:])


def _as_json(value: bytes) -> bytes:
    told = _told(value)
    row = {"type": "offset", "value": told.offset, "committed_at": told.commit_timestamp, "metadata": told.metadata}
    return json.dumps(row).encode()
