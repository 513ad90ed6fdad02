"""
Waits for the end of the streams by which the previous leader published.

A broker goes on reading what a process has sent before its end, so the log grows for a moment after a leader was
killed. The broker closes a stream when it has read everything. Streams of other programs look the same, and may stay
open, so there is a limit.
"""

from collections.abc import Awaitable, Callable

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc

GONE_S = 1.0
_LOOK_S = 0.05


class PredecessorStreams:
    """
    The streams of the previous leader, from when this gateway leads. There is one deadline for all partitions of a
    broker. It begins when the broker responds first, because a broker that hangs has not read anything meanwhile.
    """

    _log = Logger()

    def __init__(self, rpc: BrokerRpc, clock: IReactorTime) -> None:
        self._rpc = rpc
        self._clock = clock
        self._deadlines: dict[str, float] = {}  # by broker

    async def until_gone(
        self, topic: str, index: int, current_assignment: Callable[[], Awaitable[BrokerPartitionAssignment]]
    ) -> None:
        """
        Wait until nobody publishes to this partition, or the deadline of its broker has passed.
        """
        began: float | None = None
        while True:
            assignment = await current_assignment()
            has_publisher = await self._rpc.has_publisher(topic, assignment)
            now = self._clock.seconds()
            began = now if began is None else began
            deadline = self._deadlines.setdefault(assignment.leader_broker, now + GONE_S)
            if not has_publisher or now >= deadline:
                break
            await deferLater(self._clock, _LOOK_S)
        if waited := now - began:
            self._log.info(
                "{topic}-{index}: waited {waited:.2f} s for the end of earlier publish streams",
                topic=topic,
                index=index,
                waited=waited,
            )
