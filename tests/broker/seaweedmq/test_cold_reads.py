"""
Reads of files whose filer may hang.
"""

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.cold_reads import PATIENCE_S, ColdReads
from kgateway.wire.types import Buffer

_WANTED = 5, 1_000, True, 9


class Files:
    """
    What is read from them comes when a test has it come.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, bool, int]] = []
        self.coming: list[Deferred[list[Buffer]]] = []

    async def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        self.asked.append((offset, max_bytes, at_least_one, stop))
        self.coming.append(Deferred())
        return await self.coming[-1]


class ColdReadsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.files, self.arrivals = Clock(), Files(), 0
        self.reads = ColdReads(self.files.read, self.clock, self._arrived)

    def _arrived(self) -> None:
        self.arrivals += 1

    def test_what_comes_in_time_is_the_answer(self) -> None:
        """
        And nobody else is told.
        """
        answer = self.reads.read(*_WANTED)
        self.clock.advance(PATIENCE_S * 0.9)
        self.assertNoResult(answer)
        self.files.coming[0].callback([b"batch"])
        self.assertEqual([b"batch"], self.successResultOf(answer))
        self.assertEqual(0, self.arrivals)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_what_takes_long_brings_nothing_and_is_told_when_it_comes(self) -> None:
        answer = self.reads.read(*_WANTED)
        self.clock.advance(PATIENCE_S)
        self.assertEqual([], self.successResultOf(answer))
        self.assertEqual(0, self.arrivals)
        self.files.coming[0].callback([b"batch"])
        self.assertEqual(1, self.arrivals)

    def test_who_comes_again_asks_no_filer_again(self) -> None:
        """
        As clients do that are told that there is nothing, while the read is under way.
        """
        for _ in range(3):
            answer = self.reads.read(*_WANTED)
            self.clock.advance(PATIENCE_S)
            self.assertEqual([], self.successResultOf(answer))
        answer = self.reads.read(*_WANTED)
        self.files.coming[0].callback([b"batch"])
        self.assertEqual([b"batch"], self.successResultOf(answer))
        self.assertEqual([_WANTED], self.files.asked)

    def test_a_failure_in_time_is_the_answer(self) -> None:
        answer = self.reads.read(*_WANTED)
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.failureResultOf(answer, RpcError)

    def test_a_late_failure_lets_the_next_one_ask(self) -> None:
        """
        There is nobody to be told of it.
        """
        self.reads.read(*_WANTED)
        self.clock.advance(PATIENCE_S)
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.assertEqual(0, self.arrivals)
        self.reads.read(*_WANTED)
        self.assertEqual(2, len(self.files.asked))

    def test_what_many_came_for_in_vain_is_told_once(self) -> None:
        """
        Clients come some times in a second, and a filer may hang for a minute.
        """
        told: list[Any] = []
        self.patch(ColdReads, "_log", Logger(observer=cast(Any, told.append)))
        self._come_in_vain(9)
        self.files.coming[0].errback(RpcError(Status.UNAVAILABLE, "no filer"))
        self.assertEqual((1, 0), (len(told), self.arrivals))
        self._come_in_vain(9)
        self.files.coming[1].callback([b"batch"])
        self.assertEqual((1, 1), (len(told), self.arrivals))

    def _come_in_vain(self, times: int) -> None:
        for _ in range(times):
            self.reads.read(*_WANTED)
            self.clock.advance(PATIENCE_S)
