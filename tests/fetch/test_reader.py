"""
One look at many partitions.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Isolation
from kgateway.context import Context
from kgateway.fetch.reader import Reader, ReadPass
from kgateway.fetch.sessions import FetchPartition, RequestPartition, ResponsePartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer
from tests.fetch.rigged_broker import batch, rigged

SIZE = len(batch())
PLENTY = 100 * SIZE


def want(index: int = 0, offset: int = 0, *, max_bytes: int = PLENTY, topic: str = "orders") -> FetchPartition:
    return FetchPartition(topic, RequestPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes))


def sizes(reading: ReadPass) -> list[int]:
    """
    The bytes in each response.
    """
    return [sum(map(len, _buffers(answer))) for answer in reading.answers]


def _buffers(answer: ResponsePartition) -> list[Buffer]:
    records = answer.records or []
    return records if isinstance(records, list) else [records]


class ReadingTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        serving, self.broker = rigged()
        self.partitions = self.broker.make(partitions=3)
        for partition in self.partitions:
            partition.put(batch(), batch())
        context = Context(serving.parts, serving.session, 12, "test-client")
        self.reader = Reader(context, Isolation.READ_UNCOMMITTED, -1)

    def read(self, *wanted: FetchPartition, max_bytes: int = PLENTY) -> ReadPass:
        return ReadPass(self.reader, wanted or [want(0), want(1), want(2)], max_bytes)

    def codes(self, reading: ReadPass) -> list[int]:
        return [answer.error_code for answer in reading.answers]


class LimitTests(ReadingTestCase):
    def test_everything(self) -> None:
        """
        All that fits is read, partition after partition in the requested order.
        """
        reading = self.read(want(2), want(0, 1))
        self.assertEqual([2, 0], [answer.partition_index for answer in reading.answers])
        self.assertEqual(([2 * SIZE, SIZE], 3 * SIZE), (sizes(reading), reading.size))

    def test_limit_of_a_partition(self) -> None:
        """
        No partition brings more than its own limit.
        """
        self.assertEqual([SIZE, 2 * SIZE], sizes(self.read(want(0, max_bytes=2 * SIZE - 1), want(1))))

    def test_limit_of_the_request(self) -> None:
        """
        All partitions together stay below the request's limit.
        """
        self.assertEqual([2 * SIZE, SIZE, 0], sizes(self.read(max_bytes=4 * SIZE - 1)))

    def test_one_batch_at_least(self) -> None:
        """
        The first partition with batches brings one even above the limits; later ones do not.
        """
        wanted = [want(0, 2, max_bytes=1), want(1, max_bytes=1), want(2, max_bytes=1)]
        self.assertEqual([0, SIZE, 0], sizes(self.read(*wanted)))
        self.assertEqual([SIZE, 0, 0], sizes(self.read(max_bytes=1)))
        self.assertEqual(0, self.partitions[2].reads[-1][1])  # the rest is never negative

    def test_an_empty_partition_uses_no_limit(self) -> None:
        self.assertEqual([0, 2 * SIZE], sizes(self.read(want(0, 2), want(1), max_bytes=2 * SIZE)))


class FailureTests(ReadingTestCase):
    def test_conclusive(self) -> None:
        """
        An error makes the response ready; the partitions beside it are read.
        """
        self.broker.failing[1] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        reading = self.read()
        self.assertEqual([ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE], self.codes(reading))
        self.assertEqual([2 * SIZE, 0, 2 * SIZE], sizes(reading))
        self.assertEqual([False, True], [self.read(want(0)).conclusive, reading.conclusive])

    def test_unforeseen(self) -> None:
        """
        An unexpected failure is logged, and the partitions beside it are read.
        """
        self.broker.failing[0] = ZeroDivisionError()
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], self.codes(self.read(want(0), want(1))))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class ColdTests(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.ends: list[str] = []
        self.partitions[0].cold = self.partitions[1].cold = True

    def start(self, *wanted: FetchPartition, **more: Any) -> ReadPass:
        reading = self.read(*wanted, **more)
        reading.call_when_read(lambda: self.ends.append("end"))
        return reading

    def test_cold_reads_are_concurrent(self) -> None:
        """
        Until they are complete, their responses have only the offsets of the log.
        """
        reading = self.start(*(want(index, max_bytes=3 * SIZE) for index in range(3)))
        self.assertEqual([1, 1, 1], [len(partition.reads) for partition in self.partitions])
        self.assertEqual(([0, 0, 2 * SIZE], 2), (sizes(reading), reading.outstanding))
        self.assertEqual([2, 2, 2], [answer.high_watermark for answer in reading.answers])
        self.partitions[1].arrive()
        self.assertEqual([], self.ends)
        self.partitions[0].arrive()
        self.assertEqual(([2 * SIZE] * 3, 6 * SIZE), (sizes(reading), reading.size))
        self.assertEqual(["end"], self.ends)

    def test_limit(self) -> None:
        """
        A cold read counts with its maximum size.
        """
        reading = self.start(want(0, max_bytes=3 * SIZE), want(2), max_bytes=4 * SIZE)
        self.partitions[0].arrive()
        self.assertEqual([2 * SIZE, SIZE], sizes(reading))

    def test_one_batch_at_least(self) -> None:
        """
        The one batch above the limits may be that of a cold read.
        """
        reading = self.start(want(0, max_bytes=1), want(2, max_bytes=1))
        self.partitions[0].arrive()
        self.assertEqual([SIZE, 0], sizes(reading))

    def test_nothing_after_all(self) -> None:
        """
        If cold reads bring nothing, others get the bytes reserved for them.
        """
        for more, expected in ((PLENTY, 2 * SIZE), (1, SIZE)):
            reading = self.start(want(0, 2), want(2, max_bytes=more))
            self.assertEqual([0, 0], sizes(reading))
            self.partitions[0].arrive()
            self.assertEqual([0, expected], sizes(reading), more)
        self.assertEqual(["end", "end"], self.ends)

    def test_nothing_after_all_but_cold(self) -> None:
        """
        The others may be cold as well by then.
        """
        reading = self.start(want(0, 2), want(2))
        self.partitions[2].cold = True
        self.partitions[0].arrive()
        self.assertEqual([], self.ends)
        self.partitions[2].arrive()
        self.assertEqual(([0, 2 * SIZE], ["end"]), (sizes(reading), self.ends))

    def test_failure(self) -> None:
        """
        A cold read that fails is an error like any other.
        """
        for error, code in (
            (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            reading = self.start(want(0), want(2))
            late, _ = self.partitions[0].waiting.pop()
            late.errback(error)
            self.assertEqual(([code, ErrorCode.NONE], True), (self.codes(reading), reading.conclusive))
        self.assertEqual(["end", "end"], self.ends)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_no_response_during_cold_reads(self) -> None:
        """
        The response waits for them, however much there is.
        """
        reading = self.start(want(0, max_bytes=2 * SIZE), want(2))
        self.assertEqual((2 * SIZE, False), (reading.size, reading.suffices(1)))
        self.partitions[0].arrive()
        self.assertTrue(reading.suffices(1))
