"""
Reads of files whose filer may hang.
"""

from math import inf
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.files.deadline_reads import KEPT_S, PATIENCE_S, DeadlineReads
from kgateway.wire.types import Buffer

_WANTED = 5, 1_000, True, 9
_ASKED = *_WANTED, inf  # by who need not answer


class Files:
    """
    Files whose reads end when a test says so.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, bool, int]] = []
        self.at_hand: list[Buffer] | None = None  # it does not have to come
        self.failing: RpcError | None = None
        self.coming: list[Deferred[list[Buffer]]] = []

    async def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        self.asked.append((offset, max_bytes, at_least_one, stop))
        if self.failing:
            raise self.failing
        if self.at_hand is not None:
            return self.at_hand
        self.coming.append(Deferred())
        return await self.coming[-1]


class ColdReadsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.files, self.arrivals = Clock(), Files(), 0
        self.reads = DeadlineReads(self.files.read, self.clock, self._arrived)

    def _arrived(self) -> None:
        self.arrivals += 1

    def read(self, *wanted: Any) -> Deferred[list[Buffer]]:
        """
        A read that has to wait.
        """
        answer = self.reads.read(*(wanted or _ASKED))
        assert isinstance(answer, Deferred)
        return answer


class PatienceTests(ColdReadsTestCase):
    def test_what_comes_in_time_is_the_answer(self) -> None:
        """
        Nobody else is woken.
        """
        answer = self.read()
        self.clock.advance(PATIENCE_S * 0.9)
        self.assertNoResult(answer)
        self.files.coming[0].callback([b"batch"])
        self.assertEqual([b"batch"], self.successResultOf(answer))
        self.assertEqual(0, self.arrivals)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_what_takes_long_brings_nothing_and_is_told_when_it_comes(self) -> None:
        answer = self.read()
        self.clock.advance(PATIENCE_S)
        self.assertEqual([], self.successResultOf(answer))
        self.assertEqual(0, self.arrivals)
        self.files.coming[0].callback([b"batch"])
        self.assertEqual(1, self.arrivals)

    def test_who_has_less_time_gets_nothing_when_it_is_due(self) -> None:
        """
        If the deadline has passed, the answer comes in the reactor's next turn. Other readers wait on.
        """
        self.clock.advance(100)
        other = self.read()
        answer = self.read(*_WANTED, 100.05)
        self.clock.advance(0.04)
        self.assertNoResult(answer)
        self.clock.advance(0.01)
        self.assertEqual([], self.successResultOf(answer))
        answer = self.read(*_WANTED, 99.0)
        soonest = min(call.getTime() for call in self.clock.getDelayedCalls())
        self.assertEqual(self.clock.seconds(), soonest)  # a reactor refuses what was before
        self.clock.advance(0)
        self.assertEqual([], self.successResultOf(answer))
        self.assertNoResult(other)

    def test_who_has_no_time_gets_it_the_next_time(self) -> None:
        """
        A client that never waits still makes progress.
        """
        answer = self.read(*_WANTED, 0.0)
        self.clock.advance(0)
        self.assertEqual([], self.successResultOf(answer))
        self.files.coming[0].callback([b"batch"])
        self.assertEqual(1, self.arrivals)
        self.assertEqual([b"batch"], self.reads.read(*_WANTED, 0.0))

    def test_who_comes_again_asks_no_filer_again(self) -> None:
        """
        Clients that got nothing ask again while the read continues.
        """
        for _ in range(3):
            answer = self.read()
            self.clock.advance(PATIENCE_S)
            self.assertEqual([], self.successResultOf(answer))
        answer = self.read()
        self.files.coming[0].callback([b"batch"])
        self.assertEqual([b"batch"], self.successResultOf(answer))
        self.assertEqual([_WANTED], self.files.asked)

    def test_a_failure_in_time_is_the_answer(self) -> None:
        answer = self.read()
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.failureResultOf(answer, RpcError)

    def test_a_late_failure_lets_the_next_one_ask(self) -> None:
        """
        No reader is left that could get the failure.
        """
        self.read()
        self.clock.advance(PATIENCE_S)
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.assertEqual(0, self.arrivals)
        self.read()
        self.assertEqual(2, len(self.files.asked))

    def test_what_many_came_for_in_vain_is_told_once(self) -> None:
        """
        Clients ask several times a second, and a filer may hang for a minute.
        """
        told: list[Any] = []
        self.patch(DeadlineReads, "_log", Logger(observer=cast(Any, told.append)))
        self._come_in_vain(9)
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.assertEqual((1, 0), (len(told), self.arrivals))
        self._come_in_vain(9)
        self.files.coming[1].callback([b"batch"])
        self.assertEqual((1, 1), (len(told), self.arrivals))

    def _come_in_vain(self, times: int) -> None:
        for _ in range(times):
            self.read()
            self.clock.advance(PATIENCE_S)


class KeptTests(ColdReadsTestCase):
    def come_late(self, *found: bytes, offset: int = 5) -> None:
        """
        Let these batches arrive after the reader has left.
        """
        self.read(offset, 1_000, True, 9, inf)
        self.clock.advance(PATIENCE_S)
        self.files.coming[-1].callback([*found])

    def test_who_comes_again_gets_what_came_late(self) -> None:
        """
        The next reader gets the result at once, even if more can be read by now; the result is used once.
        """
        self.come_late(b"large")
        self.assertEqual([b"large"], self.reads.read(5, 2_000, False, 12, inf))
        self.assertEqual([], self.clock.getDelayedCalls())
        self.read()
        self.assertEqual(2, len(self.files.asked))

    def test_it_goes_after_a_while(self) -> None:
        """
        The result is dropped if nobody asks.
        """
        self.come_late(b"large")
        self.clock.advance(KEPT_S * 0.9)
        self.assertEqual(1, len(self.clock.getDelayedCalls()))
        self.clock.advance(KEPT_S * 0.1)
        self.read()
        self.assertEqual(2, len(self.files.asked))

    def test_only_the_last_stays(self) -> None:
        self.come_late(b"one")
        self.clock.advance(KEPT_S / 2)
        self.come_late(b"other", offset=7)
        self.clock.advance(KEPT_S * 0.9)
        self.assertEqual([b"other"], self.reads.read(7, 1_000, True, 9, inf))
        self.read()
        self.assertEqual(3, len(self.files.asked))

    def test_who_comes_again_in_time_is_the_one_who_gets_it(self) -> None:
        """
        No result is kept then.
        """
        self.read()
        self.clock.advance(PATIENCE_S)
        answer = self.read()
        self.files.coming[0].callback([b"batch"])
        self.assertEqual([b"batch"], self.successResultOf(answer))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_nothing_is_no_answer_to_keep(self) -> None:
        self.come_late()
        self.assertEqual([], self.clock.getDelayedCalls())


class LimitTests(ColdReadsTestCase):
    """
    Several readers of one offset have limits of their own.
    """

    def test_one_read_is_for_all(self) -> None:
        """
        Each reader gets what fits; the end of its range may have moved meanwhile.
        """
        limits = (6, True, 9), (9, False, 10), (1, True, 11), (2, False, 9), (0, True, 9)
        answers = [self.read(5, *limit, inf) for limit in limits]
        self.files.coming[0].callback([b"abc", b"def", b"ghi"])
        for answer, expected in zip(answers, (b"abcdef", b"abcdefghi", b"abc", b"", b"abc"), strict=True):
            found: list[Buffer] = self.successResultOf(answer)
            self.assertEqual(expected, b"".join(found))
        self.assertEqual([(5, 6, True, 9)], self.files.asked)

    def test_what_does_not_fit_is_kept(self) -> None:
        """
        A reader without room for one batch has it read for the next reader, which has room.
        """
        answer = self.read(5, 2, False, 9, inf)
        self.assertEqual([(5, 2, True, 9)], self.files.asked)
        self.files.coming[0].callback([b"abc", b"def"])
        self.assertEqual([], self.successResultOf(answer))
        self.assertEqual([], self.reads.read(5, 2, False, 9, inf))
        self.assertEqual([b"abc"], self.reads.read(5, 5, False, 9, inf))

    def test_what_is_at_hand_is_the_answer(self) -> None:
        """
        Nobody waits.
        """
        self.files.at_hand = [b"abc", b"def"]
        self.assertEqual([b"abc"], self.reads.read(5, 4, False, 9, inf))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_what_fails_at_once(self) -> None:
        """
        The failure is the answer.
        """
        self.files.failing = RpcError(Status.UNAVAILABLE, "no filer")
        self.failureResultOf(self.read(), RpcError)
        self.assertEqual([], self.clock.getDelayedCalls())
