"""
Imports the offsets that the Go gateway has kept, if there were no groups of ours before: once, and all of them
before any client is let in.

    /topics/kafka/.meta/kgateway/taking-over-offsets      the id of the topic that they go into, while that is under way

A gateway that finds this file, and that topic, begins the import again: nobody can have committed anything since. A
topic without the file was imported completely, or there was nothing to import; the commits in the topic stand.
"""

from collections.abc import Callable, Sequence

from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.leader.go_offset_files import OffsetFiles
from kgateway.broker.seaweedmq.leader.led_topics import LedTopics
from kgateway.broker.state_log import StateLog
from kgateway.cluster.view import Topic
from kgateway.coordination.placement import partition_for
from kgateway.interfaces import KeyValue
from kgateway.plurals import counted

UNDER_WAY = "taking-over-offsets"
_AT_ONCE = 100  # rows in a batch


class OffsetImport:
    _log = Logger()

    def __init__(self, seaweed: SeaweedCluster, folder: str, files: OffsetFiles, check_lease: Precondition) -> None:
        self._seaweed = seaweed
        self._path = f"{folder}/{UNDER_WAY}"
        self._files = files
        self._check_lease = check_lease

    async def import_all(self, topic: Topic | None, make: Callable[[], Topic], topics: LedTopics) -> None:
        """
        Create the topic if it does not exist and there are offsets; write them into it.
        """
        if topic and not await self._is_under_way(topic):
            return
        rows = await self._files.all_rows()
        if topic is None and not rows:
            return
        if topic is None:
            topic = make()
            await self._begin(topic)  # before anybody can find the topic
            topics.add_state_topic(topic)
        await self._write(rows, topic, topics)
        await self._end()
        self._log.info("imported {offsets} of the Go gateway", offsets=counted(len(rows), "offset"))

    async def _write(self, rows: Sequence[tuple[str, KeyValue]], topic: Topic, topics: LedTopics) -> None:
        placed: dict[int, list[KeyValue]] = {}
        for group_id, row in rows:
            placed.setdefault(partition_for(group_id, len(topic.partitions)), []).append(row)
        for index, theirs in placed.items():
            await _append(await topics.state_logs.opened(topic, index), theirs)

    async def _is_under_way(self, topic: Topic) -> bool:
        entry = await (await self._seaweed.filer()).entry(self._path)
        return entry is not None and entry.content == _named(topic)

    async def _begin(self, topic: Topic) -> None:
        await (await self._seaweed.filer()).write(self._path, _named(topic), self._check_lease)

    async def _end(self) -> None:
        await (await self._seaweed.filer()).delete(self._path, precondition=self._check_lease)


async def _append(log: StateLog, rows: Sequence[KeyValue]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        appended = log.append(rows[start : start + _AT_ONCE])
        if appended.committed is not None:
            await appended.committed


def _named(topic: Topic) -> bytes:
    return f"{topic.id}\n".encode()
