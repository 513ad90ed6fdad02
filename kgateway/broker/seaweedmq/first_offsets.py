"""
The offsets with which groups begin where there were none before: those that the Go gateway has kept. They are taken
over once, and all of them before any client is let in.

    /topics/kafka/.meta/kgateway/taking-over-offsets      the id of the topic that they go into, while that is under way

Who finds this file, and that topic, begins anew: nobody can have committed anything since. A topic without the file has
them all, or began without any, and what is committed to it decides.
"""

from collections.abc import Callable, Sequence

from twisted.logger import Logger

from kgateway.broker.seaweed.retrying import Demand
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.offset_files import OffsetFiles
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.state_log import StateLog
from kgateway.cluster.view import Topic
from kgateway.coordinating.places import place_of
from kgateway.interfaces import KeyValue

UNDER_WAY = "taking-over-offsets"
_AT_ONCE = 100  # rows in a batch


class FirstOffsets:
    """
    For a gateway that comes to own the topics.
    """

    _log = Logger()

    def __init__(self, seaweed: Seaweed, folder: str, files: OffsetFiles, demand_ownership: Demand) -> None:
        self._seaweed = seaweed
        self._path = f"{folder}/{UNDER_WAY}"
        self._files = files
        self._demand_ownership = demand_ownership  # called before each attempt to write

    async def take_over(self, topic: Topic | None, make: Callable[[], Topic], owned: Owned) -> None:
        """
        Write them into the topic, which is made by this if it is not there and there are any.
        """
        if topic and not await self._is_under_way(topic):
            return
        rows = await self._files.found()
        if topic is None and not rows:
            return
        if topic is None:
            topic = make()
            await self._begin(topic)  # before anybody can find the topic
            owned.add_state_topic(topic)
        await self._write(rows, topic, owned)
        await self._end()
        self._log.info("{count} offsets that the Go gateway has kept are taken over", count=len(rows))

    async def _write(self, rows: Sequence[tuple[str, KeyValue]], topic: Topic, owned: Owned) -> None:
        placed: dict[int, list[KeyValue]] = {}
        for group_id, row in rows:
            placed.setdefault(place_of(group_id, len(topic.partitions)), []).append(row)
        for index, theirs in placed.items():
            await _append(await owned.states.opened(topic, index), theirs)

    async def _is_under_way(self, topic: Topic) -> bool:
        entry = await (await self._seaweed.filer()).entry(self._path)
        return entry is not None and entry.content == _named(topic)

    async def _begin(self, topic: Topic) -> None:
        await (await self._seaweed.filer()).write(self._path, _named(topic), self._demand_ownership)

    async def _end(self) -> None:
        await (await self._seaweed.filer()).delete(self._path, demand=self._demand_ownership)


async def _append(log: StateLog, rows: Sequence[KeyValue]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        appended = log.append(rows[start : start + _AT_ONCE])
        if appended.safe is not None:
            await appended.safe


def _named(topic: Topic) -> bytes:
    return f"{topic.id}\n".encode()
