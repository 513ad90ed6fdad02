"""
Asks the broker of a partition for messages that other programs have published and that are in no file yet, while
consumers wait at the end of the log.

A broker answers a subscription with what it has, and then says nothing more, and it holds back no fetch until there is
something to fetch. So it is asked again and again: for the number of the next message, which costs it nothing, and for
messages only if there are some. Nothing is asked when no consumer waits.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment, FetchMessageResponse
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.tail.tail_pace import TailPace
from kgateway.broker.seaweedmq.tail.tail_position import TailPosition
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.log_messages import TAIL_FAILED
from kgateway.wire.errors import KafkaError


class _Reach(NamedTuple):
    messages: int  # before a position, which a request includes
    is_wide: bool  # so many that hardly any was overtaken by more


# For the first request and the next ones. The widest may be too large for a response.
_REACHES = _Reach(8, False), _Reach(256, False), _Reach(4096, True), _Reach(256, True)
_ASKS = 3  # for a message that is known to be there
_PROBES = 3
_LEADER_S = 30.0  # after which another broker may have the partition


class BrokerTail:
    """
    What the broker of one partition has in memory.
    """

    def __init__(
        self,
        rpc: BrokerRpc,
        topic: str,
        assignment: Callable[[], Awaitable[BrokerPartitionAssignment]],
        clock: IReactorTime,
    ) -> None:
        self._rpc = rpc
        self._topic = topic
        self._current_assignment = assignment
        self._clock = clock
        self._leader: BrokerPartitionAssignment | None = None
        self._leader_until = 0.0
        self._drift = 0  # by how much the broker counts more offsets than messages

    async def next_offset(self) -> int:
        """
        The offset that the broker gives to the next message.
        """
        return await self._rpc.next_offset(self._topic, await self._assignment())

    async def after(self, position: TailPosition, end: int, fruitless: int = 0) -> list[LoggedMessage]:
        """
        Messages from this position on, of which the broker has some if it gives the offset `end` to the next one; none
        if they are not found. The more requests were fruitless, the further before the position the next one begins.
        """
        reach = _REACHES[min(fruitless, len(_REACHES) - 1)]
        known_first = position.next_message - reach.messages
        start = max(known_first - self._drift, 0)
        for _ in range(_ASKS):
            response = await self._rpc.fetch_from(self._topic, await self._assignment(), start)
            found = position.following(response, start, is_wide=reach.is_wide)
            if found:
                is_sure = position.is_in_newest(response, start) or await self._counts_agree(response.high_water_mark)
                return found if is_sure else []
            start, before = self._other_start(response, start, known_first, end), start
            if start == before:
                break
        return []

    async def _counts_agree(self, end: int) -> bool:
        """
        Whether the broker's offsets keep up with its count of messages, which has this end. If a killed broker has
        given offsets again, they do not, and it leaves out messages with such offsets.
        """
        for _ in range(_PROBES):
            response = await self._rpc.fetch_from(self._topic, await self._assignment(), end - 1)
            if response.messages and response.next_offset >= response.high_water_mark:
                return True
        return False

    def forget_leader(self) -> None:
        self._leader = None

    def _other_start(self, response: FetchMessageResponse, start: int, known_first: int, end: int) -> int:
        """
        Where to look instead: in the newest window, or where the broker has messages if it counts otherwise.
        """
        if response.log_start_offset > start:
            return response.log_start_offset
        self._drift = max(end - response.high_water_mark, 0)
        return max(known_first - self._drift, response.log_start_offset)

    async def _assignment(self) -> BrokerPartitionAssignment:
        if self._leader is None or self._clock.seconds() >= self._leader_until:
            self._leader = await self._current_assignment()
            self._leader_until = self._clock.seconds() + _LEADER_S
        return self._leader


class Tail:
    _log = Logger()

    def __init__(
        self,
        broker: BrokerTail,
        name: str,
        pace: TailPace,
        clock: IReactorTime,
        position: Callable[[], TailPosition | None],
        show: Callable[[Sequence[LoggedMessage]], Awaitable[None]],
        is_awaited: Callable[[], bool],
        lost: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._name = name
        self._pace = pace
        self._clock = clock
        self._position = position  # none while what follows cannot be shown
        self._show = show
        self._is_awaited = is_awaited  # whether consumers wait
        self._lost = lost  # called when the broker does not answer any more
        self._is_wanted = False  # a consumer has come to the end since the last request
        self._next: IDelayedCall | None = None
        self._asking: Deferred[None] | None = None
        self._due = self._found_at = clock.seconds()
        self._fruitless = 0
        self._fruitless_at: tuple[TailPosition, int] | None = None
        self._is_stopped = self._has_failed = False

    def want(self) -> None:
        """
        Look for messages, because a consumer has come to the end of the log.
        """
        self._is_wanted = True
        if self._next is None and self._asking is None and not self._is_stopped:
            self._begin()

    async def catch_up(self) -> None:
        """
        Show all messages that the broker has now.
        """
        end, position = await self._broker.next_offset(), self._position()
        while position and position.next_message < end and await self._show_from(position, end):
            before, position = position, self._position()
            if position == before:
                break

    def check(self, next_message: int) -> None:
        """
        Find out, if nothing is asked for now, whether the broker has all messages before this one.
        """
        if self._next is None and self._asking is None and not self._is_stopped:
            checking = self._asking = Deferred.fromCoroutine(self._check(next_message))
            checking.addErrback(self._failed).addCallback(self._checked)

    def moved(self) -> None:
        """
        SeaweedMQ has recreated the partition.
        """
        self._broker.forget_leader()

    def stop(self) -> None:
        self._is_stopped = True
        if self._next:
            self._next.cancel()
            self._end()
        if self._asking:
            self._asking.cancel()

    def _begin(self) -> None:
        self._pace.begin()
        self._next = self._clock.callLater(max(0.0, self._due - self._clock.seconds()), self._ask)

    def _end(self) -> None:
        self._next = None
        self._pace.end()

    def _ask(self) -> None:
        if not (self._is_wanted or self._is_awaited()):
            self._end()
            return
        self._next, self._is_wanted = None, False
        asking = self._asking = Deferred.fromCoroutine(self._look())
        asking.addErrback(self._failed).addCallback(self._asked)

    def _asked(self, _: None) -> None:
        self._asking = None
        if self._is_stopped:
            self._pace.end()
            return
        pause_s = self._pace.pause_s(self._clock.seconds() - self._found_at, self._fruitless)
        self._due = self._clock.seconds() + pause_s
        self._next = self._clock.callLater(pause_s, self._ask)

    def _checked(self, _: None) -> None:
        self._asking = None
        if self._is_wanted and not self._is_stopped:
            self._begin()

    async def _check(self, next_message: int) -> None:
        if await self._broker.next_offset() < next_message:
            self._lost()
        self._has_failed = False

    async def _look(self) -> None:
        position = self._position()
        if position is None:
            return
        end = await self._broker.next_offset()
        if (position, end) != self._fruitless_at:
            self._fruitless, self._fruitless_at = 0, (position, end)
        if end > position.next_message:
            if await self._show_from(position, end):
                self._found_at = self._clock.seconds()
            else:
                self._fruitless += 1
        self._has_failed = False

    async def _show_from(self, position: TailPosition, end: int) -> bool:
        """
        Show messages from this position on; returns whether there are any.
        """
        found = await self._broker.after(position, end, self._fruitless)
        if found:
            await self._show(found)
        return bool(found)

    def _failed(self, failure: Failure) -> None:
        self._broker.forget_leader()
        self._fruitless += 1
        if self._has_failed or failure.check(CancelledError):
            return
        self._has_failed = True
        if failure.check(*CLUSTER_ERRORS, KafkaError):
            self._lost()
            error = failure.getErrorMessage()
            self._log.info("cannot ask the broker of {name} for its messages: {error}", name=self._name, error=error)
        else:
            self._log.failure(TAIL_FAILED, failure, name=self._name)
