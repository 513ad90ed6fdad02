"""
The partitions of a SeaweedMQ cluster that are open here, and those that are being opened.

Opening one takes calls to the filer, so the first client gets an error and has to retry.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.base import topic_deleted
from kgateway.broker.deferreds import when_over
from kgateway.broker.seaweed.calls.retries import is_passing
from kgateway.broker.seaweed.chain.partition import ChainPartition
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.cluster.view import Topic
from kgateway.log_messages import OPENING_PARTITION_FAILED, PARTITION_NOT_OPEN_YET
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

Key = tuple[Uuid, int]  # a PartitionId as a plain tuple: each request looks one up
Partition = SeaweedMQPartition | ChainPartition
Open = Callable[[Topic, int], Awaitable[Partition]]


class ClusterPartitionRegistry:
    _log = Logger()

    def __init__(self, open_one: Open) -> None:
        self.open: dict[Key, Partition] = {}
        self._open_one = open_one
        self._opening: dict[Key, Deferred[None]] = {}
        self._refused: dict[Key, str] = {}  # why the last attempt failed

    def partition(self, topic: Topic, index: int) -> Partition:
        """
        The partition; raises a retriable KafkaError if it is not open yet.
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
        why = self._refused.get(key, "its files are being examined")
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic.name}-{index} is not open yet: {why}")

    async def opened(self, topic: Topic, index: int) -> Partition:
        with suppress(KafkaError):
            return self.partition(topic, index)
        key = topic.id, index
        if key in self._opening:
            await when_over(self._opening[key])
        return self.partition(topic, index)

    def add(self, partition: Partition) -> None:
        key = partition.topic.id, partition.index
        self._refused.pop(key, None)
        self.open[key] = partition

    def of_topic(self, topic: Topic) -> list[Partition]:
        return [partition for key, partition in self.open.items() if key[0] == topic.id]

    def forget(self, topic: Topic, why: KafkaError | None = None) -> None:
        self._close([key for key in (*self._opening, *self.open) if key[0] == topic.id], why or topic_deleted(topic))

    def lose(self, why: KafkaError) -> None:
        self._close([*self._opening, *self.open], why)

    def _close(self, keys: list[Key], why: KafkaError) -> None:
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
        if _will_pass(failure.value):
            self._log.warn(PARTITION_NOT_OPEN_YET, topic=topic.name, index=index, why=why)
        else:
            self._log.failure(OPENING_PARTITION_FAILED, failure, topic=topic.name, index=index)


def _will_pass(error: object) -> bool:
    """
    Whether another attempt may succeed; also if the gateway lacks its lock for a moment.
    """
    lacks_lock = isinstance(error, KafkaError) and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return lacks_lock or (isinstance(error, Exception) and is_passing(error))
