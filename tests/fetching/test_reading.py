"""
One look at many partitions.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Isolation
from kgateway.context import Context
from kgateway.fetching.reading import Reader, Reading
from kgateway.fetching.wanted import Answer, Asked, Wanted
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer
from tests.fetching.rigged import batch, rigged

SIZE = len(batch())
PLENTY = 100 * SIZE


def want(index: int = 0, offset: int = 0, *, max_bytes: int = PLENTY, topic: str = "orders") -> Wanted:
    return Wanted(topic, Asked(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes))


def sizes(reading: Reading) -> list[int]:
    """
    The bytes in each answer.
    """
    return [sum(map(len, _buffers(answer))) for answer in reading.answers]


def _buffers(answer: Answer) -> list[Buffer]:
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

    def read(self, *wanted: Wanted, max_bytes: int = PLENTY) -> Reading:
        return Reading(self.reader, wanted or [want(0), want(1), want(2)], max_bytes)

    def codes(self, reading: Reading) -> list[int]:
        return [answer.error_code for answer in reading.answers]


class LimitTests(ReadingTestCase):
    def test_everything(self) -> None:
        """
        What there is and fits is read, partition after partition in the order wanted.
        """
        reading = self.read(want(2), want(0, 1))
        self.assertEqual([2, 0], [answer.partition_index for answer in reading.answers])
        self.assertEqual(([2 * SIZE, SIZE], 3 * SIZE), (sizes(reading), reading.size))

    def test_of_a_partition(self) -> None:
        """
        No partition brings more than the client wants of it.
        """
        self.assertEqual([SIZE, 2 * SIZE], sizes(self.read(want(0, max_bytes=2 * SIZE - 1), want(1))))

    def test_of_all(self) -> None:
        """
        All partitions together bring no more than the client wants.
        """
        self.assertEqual([2 * SIZE, SIZE, 0], sizes(self.read(max_bytes=4 * SIZE - 1)))

    def test_one_batch_at_least(self) -> None:
        """
        The first partition that has batches brings one, be it larger than the limits; later ones do not.
        """
        wanted = [want(0, 2, max_bytes=1), want(1, max_bytes=1), want(2, max_bytes=1)]
        self.assertEqual([0, SIZE, 0], sizes(self.read(*wanted)))
        self.assertEqual([SIZE, 0, 0], sizes(self.read(max_bytes=1)))
        self.assertEqual(0, self.partitions[2].reads[-1][1])  # never below nothing

    def test_what_is_unlimited_stays_so(self) -> None:
        """
        A partition without records takes nothing from the others.
        """
        self.assertEqual([0, 2 * SIZE], sizes(self.read(want(0, 2), want(1), max_bytes=2 * SIZE)))


class FailureTests(ReadingTestCase):
    def test_conclusive(self) -> None:
        """
        An error is something to tell at once; the partitions beside it are read.
        """
        self.broker.failing[1] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        reading = self.read()
        self.assertEqual([ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE], self.codes(reading))
        self.assertEqual([2 * SIZE, 0, 2 * SIZE], sizes(reading))
        self.assertEqual([False, True], [self.read(want(0)).conclusive, reading.conclusive])

    def test_unforeseen(self) -> None:
        """
        What fails unforeseen is logged, and the partitions beside it are read.
        """
        self.broker.failing[0] = ZeroDivisionError()
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], self.codes(self.read(want(0), want(1))))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class ColdTests(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.ends: list[str] = []
        self.partitions[0].cold = self.partitions[1].cold = True

    def start(self, *wanted: Wanted, **more: Any) -> Reading:
        reading = self.read(*wanted, **more)
        reading.call_at_end(lambda: self.ends.append("end"))
        return reading

    def test_side_by_side(self) -> None:
        """
        Reads that have to wait wait together; until they are there, their answers say only where the log is.
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
        A read that has to wait is counted with all that it may bring.
        """
        reading = self.start(want(0, max_bytes=3 * SIZE), want(2), max_bytes=4 * SIZE)
        self.partitions[0].arrive()
        self.assertEqual([2 * SIZE, SIZE], sizes(reading))

    def test_one_batch_at_least(self) -> None:
        """
        A read that has to wait is the one that brings a batch in any case.
        """
        reading = self.start(want(0, max_bytes=1), want(2, max_bytes=1))
        self.partitions[0].arrive()
        self.assertEqual([SIZE, 0], sizes(reading))

    def test_nothing_after_all(self) -> None:
        """
        Where reads that had to wait bring nothing, the others get what was kept for them.
        """
        for more, expected in ((PLENTY, 2 * SIZE), (1, SIZE)):
            reading = self.start(want(0, 2), want(2, max_bytes=more))
            self.assertEqual([0, 0], sizes(reading))
            self.partitions[0].arrive()
            self.assertEqual([0, expected], sizes(reading), more)
        self.assertEqual(["end", "end"], self.ends)

    def test_nothing_after_all_but_cold(self) -> None:
        """
        The others may have to wait as well by then.
        """
        reading = self.start(want(0, 2), want(2))
        self.partitions[2].cold = True
        self.partitions[0].arrive()
        self.assertEqual([], self.ends)
        self.partitions[2].arrive()
        self.assertEqual(([0, 2 * SIZE], ["end"]), (sizes(reading), self.ends))

    def test_failure(self) -> None:
        """
        A read that fails late is an error like any other.
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

    def test_nothing_to_answer_yet(self) -> None:
        """
        As long as reads are outstanding there is no answer, however much is there.
        """
        reading = self.start(want(0, max_bytes=2 * SIZE), want(2))
        self.assertEqual((2 * SIZE, False), (reading.size, reading.suffices(1)))
        self.partitions[0].arrive()
        self.assertTrue(reading.suffices(1))
