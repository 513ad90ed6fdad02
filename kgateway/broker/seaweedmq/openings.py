"""
The partitions of a SeaweedMQ cluster that are open here, and those on their way.

To open one the filer must be asked, so whoever comes first is told to come again.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.lone import deleted
from kgateway.broker.patience import end_of
from kgateway.broker.seaweed.chain_partition import ChainPartition
from kgateway.broker.seaweed.retrying import is_passing
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

Key = tuple[Uuid, int]
Partition = SeaweedMQPartition | ChainPartition
Open = Callable[[Topic, int], Awaitable[Partition]]


class Openings:
    """
    By topic and index.
    """

    _log = Logger()

    def __init__(self, open_one: Open) -> None:
        self.open: dict[Key, Partition] = {}
        self._open_one = open_one
        self._opening: dict[Key, Deferred[None]] = {}
        self._refused: dict[Key, str] = {}  # why the last attempt has failed

    def partition(self, topic: Topic, index: int) -> Partition:
        """
        The partition; a KafkaError that tells clients to come again where it is not open yet.
        """
        key = topic.id, index
        found = self.open.get(key)
        if found and found.lost is None:
            return found
        if key not in self._opening:
            opening = self._opening[key] = Deferred.fromCoroutine(self._open_it(topic, index))
            opening.addErrback(self._not_opened, topic, index).addCallback(self._over, key)
            if opening.called:
                self._opening.pop(key, None)
        if key in self.open and self.open[key].lost is None:
            return self.open[key]
        why = self._refused.get(key, "its files are being looked at")
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic.name}-{index} is not open yet: {why}")

    async def opened(self, topic: Topic, index: int) -> Partition:
        """
        The partition, once it is open.
        """
        with suppress(KafkaError):
            return self.partition(topic, index)
        key = topic.id, index
        if key in self._opening:
            await end_of(self._opening[key])
        return self.partition(topic, index)

    def add(self, partition: Partition) -> None:
        """
        One more that is open.
        """
        key = partition.topic.id, partition.index
        self._refused.pop(key, None)
        self.open[key] = partition

    def of(self, topic: Topic) -> list[Partition]:
        """
        Those of one topic that are open.
        """
        return [partition for key, partition in self.open.items() if key[0] == topic.id]

    def forget(self, topic: Topic, why: KafkaError | None = None) -> None:
        """
        The topic is there no more, or as it was.
        """
        self._let_go([key for key in (*self._opening, *self.open) if key[0] == topic.id], why or deleted(topic))

    def lose(self, why: KafkaError) -> None:
        """
        None of them is ours any more.
        """
        self._let_go([*self._opening, *self.open], why)

    def _let_go(self, keys: list[Key], why: KafkaError) -> None:
        for key in dict.fromkeys(keys):
            opening, partition = self._opening.pop(key, None), self.open.pop(key, None)
            if opening:
                opening.cancel()
            if partition:
                partition.lose(why)

    async def _open_it(self, topic: Topic, index: int) -> None:
        self.add(await self._open_one(topic, index))

    def _over(self, _: None, key: Key) -> None:
        self._opening.pop(key, None)

    def _not_opened(self, failure: Failure, topic: Topic, index: int) -> None:
        if failure.check(CancelledError):
            return
        why = self._refused[topic.id, index] = failure.getErrorMessage()
        if isinstance(failure.value, Exception) and is_passing(failure.value):
            self._log.warn("{topic}-{index} is not open yet: {why}", topic=topic.name, index=index, why=why)
        else:
            self._log.failure("{topic}-{index} could not be opened", failure, topic=topic.name, index=index)
