"""
Committed offsets as SeaweedFS's Go gateway keeps them: a small file of JSON in the filer for each partition of each
group.

    /topics/kafka/.meta/consumer_offsets/GROUP/TOPIC/PARTITION/offset
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition, no_precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.layout.topic_paths import namespace_folder
from kgateway.interfaces import KeyValue
from kgateway.log_messages import OFFSET_FILE_LEFT_ALONE
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.codec import decode, encode
from kgateway.wire.errors import Malformed

_FILE = "offset"
_KEY, _VALUE = (1).to_bytes(2, "big"), (4).to_bytes(2, "big")  # the kind of the row, and the version that is written
_KEY_VERSION = 0


class OffsetFiles:
    """
    The files of one namespace, as rows of the coordinator.
    """

    _log = Logger()

    def __init__(self, seaweed: SeaweedCluster, namespace: str, check_lease: Precondition = no_precondition) -> None:
        self._seaweed = seaweed
        self._folder = f"{namespace_folder(namespace)}/.meta/consumer_offsets"
        self._check_lease = check_lease

    async def write(self, key: bytes, value: bytes | None) -> None:
        """
        Write the row into its file; a row without a value deletes it.
        """
        path = self._path(key)
        if path is None:
            return
        filer = await self._seaweed.filer()
        if value is None:
            await filer.delete(path, precondition=self._check_lease)
        else:
            await filer.write(path, _as_json(value), self._check_lease)

    async def catch_up(self, key: bytes, value: bytes) -> None:
        """
        Write the row into its file, unless that has a later commit.
        """
        path = self._path(key)
        entry = path and await (await self._seaweed.filer()).entry(path)
        if not (entry and _is_covered(value, entry.content)):
            await self.write(key, value)

    async def all_rows(self) -> list[tuple[str, KeyValue]]:
        """
        The groups that have files, and a row for each of these.
        """
        return [row async for row in self._below(self._folder)]

    def _path(self, key: bytes) -> str | None:
        """
        The path of the file; `None` for a group whose name is no path.
        """
        offset_key = decode(OffsetCommitKey, _KEY_VERSION, key[len(_KEY) :])
        parts = offset_key.group.split("/")
        if not all(parts) or {".", ".."} & {*parts}:
            return None
        return f"{self._folder}/{offset_key.group}/{offset_key.topic}/{offset_key.partition}/{_FILE}"

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
            fields: Any = json.loads(content)
            key = OffsetCommitKey(group="/".join(group), topic=topic, partition=int(partition))
            value = OffsetCommitValue(
                offset=int(fields["value"]),
                metadata=str(fields.get("metadata", "")),
                commit_timestamp=int(fields.get("committed_at", 0)),
            )
            row = _KEY + encode(key, _KEY_VERSION), _VALUE + encode(value, 4)
        except (ValueError, TypeError, LookupError, Malformed) as error:
            self._log.warn(OFFSET_FILE_LEFT_ALONE, path=path, error=error)
        else:
            yield key.group, row


def is_offset(key: bytes) -> bool:
    """
    Whether a row of a coordinator is a committed offset.
    """
    return key.startswith(_KEY)


def _is_covered(value: bytes, content: bytes) -> bool:
    """
    Whether a file has this commit, or a later one.
    """
    if content == _as_json(value):
        return True
    try:
        return int(json.loads(content)["committed_at"]) > _decoded_value(value).commit_timestamp
    except (ValueError, TypeError, LookupError):
        return False


def _decoded_value(value: bytes) -> OffsetCommitValue:
    return decode(OffsetCommitValue, int.from_bytes(value[:2], "big"), value[2:])


def _as_json(value: bytes) -> bytes:
    commit = _decoded_value(value)
    offset, time_ms, metadata = commit.offset, commit.commit_timestamp, commit.metadata
    return json.dumps({"type": "offset", "value": offset, "committed_at": time_ms, "metadata": metadata}).encode()
