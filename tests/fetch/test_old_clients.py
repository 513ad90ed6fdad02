"""
Fetch for clients that do not know all of today's records.
"""

from typing import Any

from kgateway.cluster.config import TopicConfig
from kgateway.messages.fetch import FetchRequest
from kgateway.records.batch import read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.records.to_message_set import TOO_LARGE
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetch.rigged_broker import RiggedPartition, batch
from tests.handlers.test_fetch import PLENTY, Answer, FetchTestCase, data
from tests.records.old_message_sets import read_by_judge

OLD = range(4)
MUST_FIT = range(3)


class ConvertedTestCase(FetchTestCase):
    def one(self, request: FetchRequest, version: int = 18) -> Answer:
        return self.all(request, version)[0]

    def all(self, request: FetchRequest, version: int) -> list[Answer]:
        """
        The responses for all partitions, once their records are converted.
        """
        result = self.start(request, version)
        self.serving.clock.advance(0)
        [topic] = self.successResultOf(result).responses
        return topic.partitions

    def found(self, *offsets: int, version: int, **more: Any) -> list[Record]:
        return read_by_judge(data(self.one(self.request(*offsets, **more), version)))

    def mark(self, partition: RiggedPartition) -> None:
        """
        Append a transaction marker, which no client sends.
        """
        builder = BatchBuilder(is_control=True)
        builder.append(b"\0\0\0\1", b"\0\0\0\0\0\0", timestamp=1)
        partition._write(read_batch(builder.build()))


class MessageSetTests(ConvertedTestCase):
    def test_magics(self) -> None:
        """
        Clients before v4 get message sets: of magic 1 from v2 on, with timestamps.
        """
        self.partitions[0].put(batch(b"a", count=2), batch(b"b"))
        for version in OLD:
            answer = self.one(self.request(0), version)
            self.assertEqual((ErrorCode.NONE, 3), (answer.error_code, answer.high_watermark), version)
            self.assertEqual(version >= 2, data(answer)[16], version)
            found = read_by_judge(data(answer))
            self.assertEqual([(0, b"a"), (1, b"a"), (2, b"b")], [(one.offset, one.value) for one in found], version)
            self.assertEqual(version >= 2, found[0].timestamp > 0, version)

    def test_from_an_offset(self) -> None:
        """
        A fetch from the middle of an uncompressed batch begins with its offset.
        """
        self.partitions[0].put(batch(count=9))
        for version in OLD:
            self.assertEqual([7, 8], [record.offset for record in self.found(7, version=version)], version)

    def test_newer_clients_get_batches(self) -> None:
        """
        From v4 on a client immediately gets what is stored.
        """
        self.partitions[0].put(batch(b"a"))
        [topic] = self.successResultOf(self.start(self.request(0), 4)).responses
        self.assertEqual(batch(b"a")[16:], data(topic.partitions[0])[16:])

    def test_cold_reads(self) -> None:
        """
        Records read from disk are converted too.
        """
        self.partitions[0].put(batch(b"a"))
        self.partitions[0].cold = True
        result = self.start(self.request(0), 3)
        self.assertNoResult(result)
        self.partitions[0].arrive()
        self.serving.clock.advance(0)
        [topic] = self.successResultOf(result).responses
        self.assertEqual([b"a"], [record.value for record in read_by_judge(data(topic.partitions[0]))])

    def test_waiting(self) -> None:
        """
        A waiting client gets new records.
        """
        for version in OLD:
            result = self.start(self.request(version), version)
            self.serving.clock.advance(0.1)
            self.assertNoResult(result)
            self.partitions[0].put(batch(b"%d" % version))
            self.serving.clock.advance(0)
            [topic] = self.successResultOf(result).responses
            values = [record.value for record in read_by_judge(data(topic.partitions[0]))]
            self.assertEqual([b"%d" % version], values, version)

    def test_several_partitions(self) -> None:
        """
        Each partition has its own response, and an unreadable one does not affect the others.
        """
        self.partitions[1].put(batch(b"b"))
        for version in OLD:
            empty, filled, missing = self.all(self.request(0, 0, 0), version)
            self.assertEqual((b"", [b"b"]), (data(empty), [one.value for one in read_by_judge(data(filled))]), version)
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing.error_code, version)

    def test_storage_error(self) -> None:
        """
        A disk failure during a further read has a code that old clients know.
        """
        self.mark(self.partitions[0])
        self.partitions[0].put(batch(b"a"))
        read = self.partitions[0].read

        def failing(offset: int, *rest: Any) -> Any:
            if offset:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
            return read(offset, 1, *rest[1:])

        self.partitions[0].read = failing  # type: ignore[method-assign, assignment]
        answer = self.one(self.request(0), 3)
        self.assertEqual(ErrorCode.NOT_LEADER_OR_FOLLOWER, answer.error_code)


class FittingTests(ConvertedTestCase):
    def test_a_batch_larger_than_the_request(self) -> None:
        """
        Before v3 only the beginning of a message is sent in place of such a batch; from v3 on the batch is sent.
        """
        self.partitions[0].put(batch(b"x" * 500))
        for version in MUST_FIT:
            for size in (1, 12, 100):
                answer = self.one(self.request(0, partition_max_bytes=size), version)
                self.assertEqual((ErrorCode.NONE, TOO_LARGE[:size]), (answer.error_code, data(answer)), version)
        self.assertEqual(1, len(self.found(0, version=3, partition_max_bytes=1)))

    def test_several_batches_larger_than_the_request(self) -> None:
        """
        Before v3 each such partition has the beginning of a message.
        """
        self.partitions[0].put(batch(b"x"))
        self.partitions[1].put(batch(b"x" * 500))
        for version in MUST_FIT:
            first, second = self.all(self.request(0, 0, partition_max_bytes=200), version)
            self.assertEqual((1, TOO_LARGE), (len(read_by_judge(data(first))), data(second)), version)

    def test_a_request_for_no_bytes(self) -> None:
        self.partitions[0].put(batch())
        for version in MUST_FIT:
            self.assertEqual(b"", data(self.one(self.request(0, partition_max_bytes=0, max_wait_ms=0), version)))

    def test_no_room_left(self) -> None:
        """
        If other partitions have used up the gateway's limit, no batch is reported as too large.
        """
        self.serve(fetch_max_bytes=1_024)
        self.partitions[0].put(batch(b"x" * 300))
        self.partitions[1].put(batch(b"x" * 500))
        for version in MUST_FIT:
            first, second = self.all(self.request(0, 0, partition_max_bytes=600), version)
            self.assertEqual(1, len(read_by_judge(data(first))), version)
            self.assertEqual(b"", data(second), version)

    def test_the_end_of_the_log(self) -> None:
        """
        At the end of the log no batch is reported as too large.
        """
        self.partitions[0].put(batch())
        for version in OLD:
            answer = self.one(self.request(1, partition_max_bytes=1, max_wait_ms=0), version)
            self.assertEqual(b"", data(answer), version)

    def test_no_more_than_asked_for(self) -> None:
        """
        The growth of a converted batch does not exceed the request: the client gets the rest in its next fetch.
        """
        self.partitions[0].put(batch(b"", count=100))
        stored = len(self.partitions[0].read(0, PLENTY, 0, True).batches[0])  # type: ignore[arg-type, union-attr]
        for version in OLD:
            answer = self.one(self.request(0, partition_max_bytes=stored), version)
            self.assertLessEqual(len(data(answer)), stored, version)
            count = len(read_by_judge(data(answer)))
            self.assertTrue(1 < count < 100, version)
            self.assertEqual(count, self.found(count, version=version)[0].offset, version)

    def test_conversion_is_bounded(self) -> None:
        """
        However large the request is, at most a few megabytes are converted at once, or one batch.
        """
        for _ in range(6):
            self.partitions[0].put(batch(b"x" * 1_000_000))
        for version in OLD:
            self.assertEqual(4, len(self.found(0, version=version, partition_max_bytes=50 << 20)), version)
        self.assertEqual({4 << 20}, {max_bytes for _, max_bytes, *_ in self.partitions[0].reads})
        [partition] = self.broker.make("large", config=TopicConfig(max_message_bytes=20 << 20))
        partition.put(batch(b"x" * (6 << 20)))
        for version in OLD:
            answer = self.one(self.request(0, name="large", partition_max_bytes=50 << 20), version)
            self.assertEqual(1, len(read_by_judge(data(answer))), version)


class UselessTests(ConvertedTestCase):
    def test_markers_are_skipped(self) -> None:
        """
        Behind transaction markers the client gets the next records, even if a fetch has only markers.
        """
        for _ in range(3):
            self.mark(self.partitions[0])
        self.partitions[0].put(batch(b"a"))
        for version in OLD:
            for size in (100, PLENTY):
                found = self.found(0, version=version, partition_max_bytes=size)
                self.assertEqual([(3, b"a")], [(one.offset, one.value) for one in found], version)

    def test_further_reads_are_in_time(self) -> None:
        """
        They have to be complete when the response is due.
        """
        self.mark(self.partitions[0])
        self.partitions[0].put(batch(b"a"))
        read, found = self.partitions[0].read, list[tuple[int, float]]()

        def noting(offset: int, max_bytes: int, isolation: Any, at_least_one: bool, due: float) -> Any:
            found.append((offset, due))
            return read(offset, 1, isolation, at_least_one, due)

        self.partitions[0].read = noting  # type: ignore[method-assign, assignment]
        self.one(self.request(0, max_wait_ms=300), 3)
        self.assertEqual([(0, 0.3), (1, 0.3)], found)

    def test_nothing_but_markers(self) -> None:
        """
        At the end of the log the client continues to wait, without an error.
        """
        self.mark(self.partitions[0])
        for version in OLD:
            result = self.start(self.request(0), version)
            self.serving.clock.advance(0.1)
            self.assertNoResult(result)
            self.serving.clock.advance(0.4)
            [topic] = self.successResultOf(result).responses
            [answer] = topic.partitions
            self.assertEqual((ErrorCode.NONE, b""), (answer.error_code, data(answer)), version)

    def test_a_disconnected_client_costs_nothing(self) -> None:
        """
        Nothing more is converted for it.
        """
        self.partitions[0].put(*[batch(b"a") for _ in range(3)])
        self.start(self.request(0), 3)
        self.serving.session.connected = False
        self.serving.clock.advance(0)
        self.assertEqual(1, len(self.partitions[0].reads))


class ZstdTests(ConvertedTestCase):
    def test_batches(self) -> None:
        """
        A batch in zstd is refused to clients before v4 once it is the next one; earlier batches are read.
        """
        self.partitions[0].put(batch(b"a"), batch(b"b" * 50, codec=Codec.ZSTD))
        for version in OLD:
            self.assertEqual([b"a"], [record.value for record in self.found(0, version=version)], version)
            answer = self.one(self.request(1), version)
            self.assertEqual(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, answer.error_code, version)

    def test_topics(self) -> None:
        """
        Clients before v10 can read nothing of a topic whose compression.type is zstd; others can.
        """
        [partition] = self.broker.make("packed", config=TopicConfig.of({"compression.type": "zstd"}))
        partition.put(batch())
        for version in range(19):
            topic_id = partition.topic.id
            answer = self.one(self.request(0, name="packed", topic_id=topic_id), version)
            expected = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 10 else ErrorCode.NONE
            self.assertEqual(expected, answer.error_code, version)
