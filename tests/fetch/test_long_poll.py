"""
Long polls.
"""

import gc
from functools import partial
from typing import Any
from weakref import ref

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Isolation
from kgateway.context import Context
from kgateway.fetch.long_poll import LongPoll
from kgateway.fetch.reader import Reader, ReadPass
from kgateway.fetch.sessions import FetchPartition, RequestPartition, ResponsePartition
from kgateway.messages.fetch import FetchResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetch.rigged_broker import RiggedPartition, batch, rigged

SIZE = len(batch())
PLENTY = 1 << 20
MAX_WAIT_S = 0.5


def respond(answers: list[ResponsePartition]) -> FetchResponse:
    """
    A response with the found records.
    """
    return FetchResponse(responses=[FetchResponse.Response(topic="orders", partitions=answers)])


class PollTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        serving, self.broker = rigged()
        self.clock = serving.clock
        self.partitions = self.broker.make(partitions=2)
        self.context = Context(serving.parts, serving.session, 12, "test-client")
        self.reader = Reader(self.context, Isolation.READ_UNCOMMITTED, -1)

    def poll(self, min_bytes: int = 1) -> Deferred[list[ResponsePartition]]:
        """
        The responses to a client at the start of both partitions.
        """
        wanted = [
            FetchPartition("orders", RequestPartition(partition=index, fetch_offset=0, partition_max_bytes=PLENTY))
            for index in (0, 1)
        ]

        reading = ReadPass(self.reader, wanted, PLENTY)
        poll = LongPoll(reading, respond, min_bytes, MAX_WAIT_S, self.context).response
        result: Deferred[Any] = Deferred(lambda _: poll.cancel())
        poll.call_at_end(result.callback, result.errback)
        return result.addCallback(lambda response: response.responses[0].partitions)

    def offsets(self, result: Deferred[list[ResponsePartition]]) -> list[int]:
        """
        The high watermarks in the responses; no poll must be waiting any more.
        """
        answers = self.successResultOf(result)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual([0, 0], [partition.watchers for partition in self.partitions])
        return [answer.high_watermark for answer in answers]

    def looks(self, partition: RiggedPartition | None = None) -> int:
        return len((partition or self.partitions[0]).reads)

    def turn(self) -> None:
        """
        Let the reactor take its next turn.
        """
        self.clock.advance(0)


class EndTests(PollTestCase):
    def test_records_come(self) -> None:
        """
        A poll ends once there is enough, in the next turn of the reactor.
        """
        result = self.poll()
        self.partitions[1].put(batch())
        self.assertNoResult(result)
        self.turn()
        self.assertEqual([0, 1], self.offsets(result))

    def test_time_is_up(self) -> None:
        """
        A poll ends after its maximum wait with what there is, without another look if nothing moved.
        """
        result = self.poll()
        self.clock.advance(MAX_WAIT_S - 0.01)
        self.assertNoResult(result)
        self.clock.advance(0.01)
        self.assertEqual([0, 0], self.offsets(result))
        self.assertEqual(1, self.looks())

    def test_too_little(self) -> None:
        """
        A poll waits while all partitions together have too little, and ends with that after its maximum wait.
        """
        result = self.poll(min_bytes=2 * SIZE)
        self.partitions[0].put(batch())
        self.turn()
        self.assertNoResult(result)
        self.clock.advance(MAX_WAIT_S)
        self.assertEqual([1, 0], self.offsets(result))

    def test_partitions_are_summed(self) -> None:
        result = self.poll(min_bytes=2 * SIZE)
        for partition in self.partitions:
            partition.put(batch())
        self.turn()
        self.assertEqual([1, 1], self.offsets(result))

    def test_an_error_ends_a_poll(self) -> None:
        result = self.poll(min_bytes=PLENTY)
        self.broker.failing[1] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.partitions[1].move()
        self.turn()
        self.assertEqual([0, -1], self.offsets(result))

    def test_a_deleted_topic_ends_a_poll(self) -> None:
        result = self.poll()
        self.broker.remove()
        self.turn()
        self.assertEqual([-1, -1], self.offsets(result))

    def test_cancelled(self) -> None:
        """
        A cancelled poll responds with what its last look found.
        """
        result = self.poll(min_bytes=2 * SIZE)
        self.partitions[0].put(batch())
        self.turn()
        self.partitions[1].put(batch())
        result.cancel()
        self.turn()
        self.assertEqual([1, 0], self.offsets(result))
        self.assertEqual(2, self.looks())


class LookTests(PollTestCase):
    def test_no_look_without_a_move(self) -> None:
        self.poll()
        self.clock.pump([0.1] * 4)
        self.assertEqual((1, 1), (self.looks(), self.partitions[0].watchers))

    def test_storm(self) -> None:
        """
        However much happens in one turn of the reactor, a poll looks once.
        """
        self.poll(min_bytes=PLENTY)
        for _ in range(100):
            self.partitions[0].put(batch())
            self.partitions[1].put(batch())
        self.assertEqual(1, self.looks())
        self.turn()
        self.assertEqual(2, self.looks())

    def test_pauses_grow(self) -> None:
        """
        A quarter of the time that a poll for many bytes has waited lies between two of its looks.
        """
        self.poll(min_bytes=PLENTY)
        self.clock.advance(0.1)
        self.partitions[0].put(batch())
        self.turn()
        self.assertEqual(2, self.looks())
        self.clock.advance(0.02)
        self.partitions[0].put(batch())
        self.clock.advance(0.009)
        self.assertEqual(2, self.looks())
        self.clock.advance(0.001)
        self.turn()
        self.assertEqual(3, self.looks())

    def test_a_look_after_a_pause_is_an_action(self) -> None:
        """
        It comes after those that were added before it.
        """
        looks: list[int] = []
        self.clock.callLater(0.125, self.context.actions.add, lambda: looks.append(self.looks()))
        self.poll(min_bytes=PLENTY)
        self.clock.advance(0.1)
        for _ in range(2):
            self.partitions[0].put(batch())
            self.turn()
        self.clock.advance(0.025)
        self.assertEqual([2], looks)
        self.assertEqual(3, self.looks())

    def test_the_first_look_has_no_pause(self) -> None:
        """
        A poll for many bytes that come together is answered in the turn in which they come.
        """
        result = self.poll(min_bytes=SIZE)
        self.clock.advance(0.4)
        self.partitions[0].put(batch())
        self.turn()
        self.assertEqual([1, 0], self.offsets(result))

    def test_no_pause_for_any_bytes(self) -> None:
        """
        A poll for a single byte looks at once, however long it has waited.
        """
        result = self.poll()
        self.clock.advance(0.4)
        self.partitions[0].put(batch())
        self.turn()
        self.assertEqual([1, 0], self.offsets(result))

    def test_time_is_up_before_the_look(self) -> None:
        """
        A poll whose time is up during a pause looks first at what moved.
        """
        result = self.poll(min_bytes=PLENTY)
        self.clock.advance(0.45)
        for _ in range(2):
            self.partitions[0].put(batch())
            self.turn()
        self.assertNoResult(result)
        self.clock.advance(0.05)
        self.assertEqual([2, 0], self.offsets(result))

    def test_false_alarm(self) -> None:
        """
        A poll continues to wait after a move that brought nothing.
        """
        result = self.poll()
        for looks in (2, 3):
            self.partitions[0].move()
            self.turn()
            self.assertEqual(looks, self.looks())
        self.assertNoResult(result)


class ColdTests(PollTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.partitions[0].cold = True

    def test_first_look_takes_time(self) -> None:
        """
        A poll ends when the first look, which had to wait for the disk, brings enough.
        """
        self.partitions[0].put(batch())
        result = self.poll()
        self.turn()
        self.assertNoResult(result)
        self.partitions[0].arrive()
        self.assertEqual([1, 0], self.offsets(result))

    def test_moved_during_a_look(self) -> None:
        """
        Partitions that move during a slow look are looked at once after it.
        """
        self.partitions[0].put(batch())
        result = self.poll(min_bytes=2 * SIZE)
        self.partitions[1].put(batch())
        self.partitions[1].move()
        self.turn()
        self.assertEqual(1, self.looks())
        self.partitions[0].cold = False
        self.partitions[0].arrive()
        self.turn()
        self.assertEqual(2, self.looks())
        self.assertEqual([1, 1], self.offsets(result))

    def test_nothing_moved_during_a_look(self) -> None:
        """
        A slow look that brought nothing is not repeated.
        """
        self.poll()
        self.partitions[0].arrive()
        self.turn()
        self.assertEqual(1, self.looks())

    def test_time_is_up_during_a_look(self) -> None:
        """
        A look that is running when time is up is waited for: otherwise a reader of cold data would never progress.
        """
        self.partitions[0].put(batch())
        result = self.poll(min_bytes=PLENTY)
        self.clock.advance(MAX_WAIT_S)
        self.assertNoResult(result)
        self.partitions[0].arrive()
        self.assertEqual([1, 0], self.offsets(result))

    def test_cancelled_during_a_look(self) -> None:
        """
        A poll that is cancelled during a look responds with the look before it; later arrivals change nothing.
        """
        self.partitions[0].cold = False
        result = self.poll(min_bytes=PLENTY)
        self.partitions[0].put(batch())
        self.partitions[0].cold = True
        self.turn()
        result.cancel()
        self.assertEqual([0, 0], self.offsets(result))
        self.partitions[0].arrive()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_cancelled_during_the_first_look(self) -> None:
        """
        A poll that is cancelled during its first look responds without what has not arrived.
        """
        self.partitions[0].put(batch())
        result = self.poll()
        result.cancel()
        self.assertEqual([1, 0], self.offsets(result.addCallback(self.without_records)))

    def without_records(self, answers: list[ResponsePartition]) -> list[ResponsePartition]:
        self.assertEqual([b"", []], [answer.records for answer in answers])
        return answers


class NothingLeftTests(PollTestCase):
    def test_over(self) -> None:
        """
        A finished poll releases what it held, without the collector of cycles.
        """

        def answer(answers: list[ResponsePartition]) -> FetchResponse:
            return respond(answers)

        wanted = FetchPartition("orders", RequestPartition(partition=0, fetch_offset=0, partition_max_bytes=PLENTY))
        gc.disable()
        self.addCleanup(gc.enable)
        for cold in (False, True):
            self.partitions[0].cold = cold
            poll = LongPoll(ReadPass(self.reader, [wanted], PLENTY), partial(answer), 1, MAX_WAIT_S, self.context)
            held, listener = ref(poll._respond), list[object]([poll])
            poll.response.call_at_end(listener.append, self.fail)
            self.partitions[0].arrive()
            self.clock.advance(MAX_WAIT_S)
            self.assertEqual(2, len(listener))
            del poll, listener
            self.assertIsNone(held(), cold)

    def test_a_failing_response(self) -> None:
        """
        The failure reaches the waiting caller.
        """

        def fail(answers: list[ResponsePartition]) -> FetchResponse:
            raise ZeroDivisionError

        poll = LongPoll(ReadPass(self.reader, [], PLENTY), fail, 1, MAX_WAIT_S, self.context).response
        failures: list[Failure] = []
        poll.call_at_end(self.fail, failures.append)
        self.clock.advance(MAX_WAIT_S)
        self.assertEqual([ZeroDivisionError], [failure.type for failure in failures])

    def test_cancelled_twice(self) -> None:
        """
        A finished poll does not change.
        """
        poll = LongPoll(ReadPass(self.reader, [], PLENTY), respond, 1, MAX_WAIT_S, self.context).response
        told: list[object] = []
        poll.call_at_end(told.append, self.fail)
        poll.cancel()
        poll.call_at_end(told.append, self.fail)
        poll.cancel()
        self.assertEqual(1, len(told))
