"""
When a broker is asked for messages of other programs, and what it is asked for.
"""

from collections.abc import Sequence
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment, DataMessage, FetchMessageResponse
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.tail.tail import BrokerTail, Tail
from kgateway.broker.seaweedmq.tail.tail_pace import TailPace
from kgateway.broker.seaweedmq.tail.tail_position import NOTHING_BEFORE, TailPosition

_SECOND = 1.0


class Broker:
    """
    A broker with one window of memory, that has loaded the partition after some messages, and counts the offsets of
    messages and the messages themselves. What is before the window it reads from files, if it has some.
    """

    def __init__(self, first: int = 0, drift: int = 0) -> None:
        self.times: list[int] = []
        self.next = first
        self.window = first - drift
        self.drift = drift
        self.in_files: list[int] = []  # the times of the messages before the window
        self.asked = 0
        self.fetched: list[int] = []
        self.looked_up = 0
        self.late = 0  # how many messages come between two steps of a request
        self.error: RpcError | None = None
        self.hanging: Deferred[None] | None = None

    def publish(self, *times: int) -> None:
        self.times += times
        self.next += len(times)

    async def assignment(self) -> BrokerPartitionAssignment:
        self.looked_up += 1
        return BrokerPartitionAssignment(leader_broker="b:1")

    async def next_offset(self, name: str, assignment: BrokerPartitionAssignment) -> int:
        self.asked += 1
        if self.hanging:
            await self.hanging
        if self.error:
            raise self.error
        return max(self.next, self.next - self.drift)

    async def fetch_from(self, name: str, assignment: BrokerPartitionAssignment, start: int) -> FetchMessageResponse:
        self.fetched.append(start)
        first = self.next - len(self.times)
        end = self.next - self.drift
        wanted = self.times[max(start - first, 0) :] if self.window <= start < end else []
        if start < self.window and self.in_files:
            wanted = [*self.in_files[start - self.window :], *self.times[self.window - first :]]
        following = self.next if wanted else start
        for _ in range(self.late):
            self.publish(self.times[-1] + 1)
            self.late -= 1
        return FetchMessageResponse(
            messages=[DataMessage(ts_ns=time) for time in wanted],
            next_offset=following,
            high_water_mark=self.next - self.drift,
            log_start_offset=self.window,
        )


class TailTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.broker = Clock(), Broker()
        self.pace = TailPace()
        self.position: TailPosition | None = TailPosition(0, NOTHING_BEFORE)
        self.shown: list[int] = []
        self.is_awaited = False
        self.losses = 0
        self.tail = self.of(self.broker)

    def of(self, broker: Broker) -> Tail:
        self.broker = broker
        asked = BrokerTail(cast(Any, broker), "t", broker.assignment, self.clock)
        return Tail(
            asked,
            "t-0",
            self.pace,
            self.clock,
            lambda: self.position,
            self.show,
            lambda: self.is_awaited,
            self.lost,
        )

    async def show(self, found: Sequence[LoggedMessage]) -> None:
        self.shown += [message.ts_ns for message in found]
        self.position = TailPosition(found[-1].offset + 1, found[-1].ts_ns)

    def lost(self) -> None:
        self.losses += 1

    def pass_time(self, seconds: float) -> None:
        self.clock.pump([0.001] * round(seconds * 1000))


class PollTests(TailTestCase):
    def test_nobody_is_asked_before_a_consumer_comes(self) -> None:
        self.pass_time(_SECOND)
        self.assertEqual(0, self.broker.asked)

    def test_messages_are_shown_once_and_in_order(self) -> None:
        self.is_awaited = True
        self.tail.want()
        for time in range(1, 30):
            self.broker.publish(time)
            self.pass_time(0.02)
        self.assertEqual(list(range(1, 30)), self.shown)

    def test_messages_are_only_fetched_if_there_are_some(self) -> None:
        """
        To fetch loads the partition into the broker's memory.
        """
        self.is_awaited = True
        self.tail.want()
        self.pass_time(_SECOND)
        self.assertLess(10, self.broker.asked)
        self.assertEqual([], self.broker.fetched)

    def test_nobody_is_asked_when_no_consumer_waits(self) -> None:
        """
        One request may still follow.
        """
        self.is_awaited = True
        self.tail.want()
        self.pass_time(_SECOND)
        self.is_awaited = False
        asked = self.broker.asked
        self.pass_time(_SECOND)
        self.assertLessEqual(self.broker.asked, asked + 1)
        self.assertEqual([], self.clock.getDelayedCalls())
        asked = self.broker.asked
        self.tail.want()
        self.pass_time(0.2)
        self.assertLess(asked, self.broker.asked)

    def test_consumers_that_do_not_wait_keep_it_going(self) -> None:
        for _ in range(20):
            self.tail.want()
            self.pass_time(0.05)
        self.assertLess(5, self.broker.asked)
        self.broker.publish(1)
        self.tail.want()
        self.pass_time(0.2)
        self.assertEqual([1], self.shown)

    def test_nobody_is_asked_while_nothing_can_be_shown(self) -> None:
        self.position, self.is_awaited = None, True
        self.tail.want()
        self.pass_time(_SECOND)
        self.assertEqual(0, self.broker.asked)
        self.position = TailPosition(0, NOTHING_BEFORE)
        self.pass_time(0.2)
        self.assertLess(0, self.broker.asked)

    def test_one_request_at_a_time(self) -> None:
        self.broker.hanging = Deferred()
        self.is_awaited = True
        self.tail.want()
        self.pass_time(_SECOND)
        self.tail.want()
        self.pass_time(_SECOND)
        self.assertEqual(1, self.broker.asked)

    def test_a_stopped_one_asks_no_more(self) -> None:
        self.is_awaited = True
        self.tail.want()
        self.pass_time(0.1)
        self.broker.hanging = Deferred()
        self.pass_time(0.1)
        asked = self.broker.asked
        self.tail.stop()
        self.tail.want()
        self.pass_time(_SECOND)
        self.assertEqual(asked, self.broker.asked)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(0.01, self.pace.pause_s(0, 0))


class FailureTests(TailTestCase):
    def test_a_broker_that_comes_back_is_asked_again(self) -> None:
        """
        Its leader is looked up anew, and the loss is reported once.
        """
        self.is_awaited = True
        self.tail.want()
        self.pass_time(0.1)
        self.broker.error = RpcError(Status.UNAVAILABLE, "gone")
        self.pass_time(3 * _SECOND)
        self.assertEqual(1, self.losses)
        self.assertLess(1, self.broker.looked_up)
        self.broker.error = None
        self.broker.publish(1)
        self.pass_time(1.1 * _SECOND)
        self.assertEqual([1], self.shown)

    def test_a_broker_that_does_not_answer_is_not_asked_often(self) -> None:
        self.broker.error = RpcError(Status.UNAVAILABLE, "gone")
        self.is_awaited = True
        self.tail.want()
        self.pass_time(10 * _SECOND)
        self.assertLess(self.broker.asked, 20)

    def test_a_broker_is_checked_when_no_consumer_waits(self) -> None:
        """
        Once for each request, and not while the broker is asked anyway.
        """
        self.broker.publish(*range(1, 6))
        self.tail.check(5)
        self.assertEqual((1, 0), (self.broker.asked, self.losses))
        self.tail.check(6)
        self.assertEqual((2, 1), (self.broker.asked, self.losses))
        self.broker.error = RpcError(Status.UNAVAILABLE, "gone")
        self.tail.check(5)
        self.assertEqual((3, 2), (self.broker.asked, self.losses))
        self.assertEqual([], self.clock.getDelayedCalls())
        self.is_awaited = True
        self.tail.want()
        self.tail.check(5)
        self.assertEqual(3, self.broker.asked)

    def test_a_consumer_may_come_while_a_broker_is_checked(self) -> None:
        hanging: Deferred[None] = Deferred()
        self.broker.hanging = hanging
        self.tail.check(5)
        self.tail.want()
        self.broker.hanging = None
        hanging.callback(None)
        self.broker.publish(1)
        self.pass_time(0.1)
        self.assertEqual([1], self.shown)

    def test_a_bug_is_logged(self) -> None:
        self.broker.error = cast(RpcError, ZeroDivisionError())
        self.is_awaited = True
        self.tail.want()
        self.pass_time(_SECOND)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_what_is_not_found_is_asked_for_seldom(self) -> None:
        """
        The numbers of lost messages are never given: the next message comes into a file before it is believed.
        """
        tail = self.of(Broker(first=20))
        self.position = TailPosition(5, 4)
        self.is_awaited = True
        tail.want()
        self.pass_time(10 * _SECOND)
        self.assertLess(len(self.broker.fetched), 50)


class CountTests(TailTestCase):
    def test_all_that_is_there_is_shown_at_once(self) -> None:
        self.broker.publish(*range(1, 6))
        self.successResultOf(Deferred.fromCoroutine(self.tail.catch_up()))
        self.assertEqual([1, 2, 3, 4, 5], self.shown)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_a_broker_may_count_messages_from_elsewhere(self) -> None:
        """
        So it does after it was killed, or has unloaded a partition whose first file has no attributes.
        """
        tail = self.of(Broker(first=1_000, drift=900))
        self.position = TailPosition(1_000, 999)
        self.is_awaited = True
        tail.want()
        for time in range(1_000, 1_300):
            self.broker.publish(time)
            self.pass_time(0.02)
        self.assertEqual(list(range(1_000, 1_300)), self.shown)
        self.assertLess(len(self.broker.fetched), 310)  # the difference is remembered

    def test_a_broker_that_gives_offsets_again_is_not_believed(self) -> None:
        """
        It does not return the messages whose offsets are smaller than the one asked for, though they are new.
        """
        tail = self.of(Broker(first=500, drift=-300))
        self.position = TailPosition(800, 799)
        self.is_awaited = True
        tail.want()
        for time in range(1_000, 1_600):
            self.broker.publish(time)
            self.pass_time(0.02)
        self.assertEqual([], self.shown)
        self.assertIn(800, self.broker.fetched)

    def test_a_broker_that_gives_offsets_of_files_again_is_not_believed(self) -> None:
        """
        It returns the known message out of a file, and then leaves out new ones whose offsets are in that file, too.
        """
        broker = Broker(first=836, drift=-28)
        broker.in_files = list(range(764, 864))
        tail = self.of(broker)
        self.position = TailPosition(864, 863)
        broker.publish(*range(1_000, 1_100))
        self.successResultOf(Deferred.fromCoroutine(tail.catch_up()))
        self.assertEqual([], self.shown)

    def test_a_broker_may_have_the_known_message_in_a_file(self) -> None:
        broker = Broker(first=864)
        broker.in_files = list(range(764, 864))
        tail = self.of(broker)
        self.position = TailPosition(864, 863)
        broker.publish(*range(1_000, 1_100))
        self.successResultOf(Deferred.fromCoroutine(tail.catch_up()))
        self.assertEqual(list(range(1_000, 1_100)), self.shown)

    def test_messages_that_come_meanwhile_do_not_make_it_doubtful(self) -> None:
        """
        The broker tells its end after it has read the messages.
        """
        self.broker.late = 2
        self.broker.publish(*range(1, 6))
        self.successResultOf(Deferred.fromCoroutine(self.tail.catch_up()))
        self.assertEqual([1, 2, 3, 4, 5], self.shown[:5])


class PaceTests(SynchronousTestCase):
    def test_the_pause_is_a_hundredth_of_the_idle_time(self) -> None:
        pace = TailPace()
        self.assertEqual([0.01, 0.01, 0.05, 0.1], [pace.pause_s(idle_s, 0) for idle_s in (0.0, 0.5, 5.0, 3600.0)])

    def test_all_partitions_share_the_requests(self) -> None:
        pace = TailPace()
        for _ in range(1_000):
            pace.begin()
        self.assertEqual(5.0, pace.pause_s(0, 0))
        for _ in range(1_000):
            pace.end()
        self.assertEqual(0.01, pace.pause_s(0, 0))

    def test_fruitless_requests_become_seldom(self) -> None:
        pauses = [TailPace().pause_s(0, fruitless) for fruitless in range(40)]
        self.assertEqual(sorted(pauses), pauses)
        self.assertEqual(1.0, pauses[-1])
