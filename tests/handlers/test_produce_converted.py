"""
Produce with batches that have to be converted first.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from twisted.internet.defer import Deferred

from kgateway.broker.partition import admission
from kgateway.cluster.config import TopicConfig
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import TimestampType, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import Record, payload_of, records
from kgateway.records.slices import AT_ONCE_MAX
from kgateway.wire.errors import ErrorCode
from tests.fetch.rigged_broker import batch
from tests.handlers.test_produce import Answer, PartitionData, ProduceTestCase
from tests.records.old_message_sets import handmade_set
from tests.serving import START_MS

OLD = range(3)
ROWS = [Record(n, START_MS + n, b"key", b"value %d" % n) for n in range(3)]
SET = handmade_set(ROWS, 1, Codec.GZIP)


class ConvertedTestCase(ProduceTestCase):
    """
    Threads end when a test says so.
    """

    def setUp(self) -> None:
        super().setUp()
        self.threads: list[Callable[[], None]] = []
        self.serving.parts.in_thread = self.in_thread
        self.in_hand = True

    def in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()

        def end() -> None:
            try:
                done.callback(call())
            except Exception:
                done.errback()

        self.threads.append(end)
        return done

    def end(self, *places: int) -> None:
        """
        End the threads that have begun, or those at these indexes.
        """
        chosen = [self.threads[place] for place in places] or list(self.threads)
        self.threads = [thread for thread in self.threads if thread not in chosen]
        for thread in chosen:
            thread()
        self.serving.clock.advance(0)

    def end_all(self) -> None:
        self.serving.clock.advance(0)
        while self.threads:
            self.end()

    def ask(self, request: ProduceRequest, version: int = 13) -> list[Answer]:
        result = self.start(request, version)
        self.end_all()
        return self.answers(result)

    def make(self, name: str, **config: str) -> Any:
        read = TopicConfig.of({key.replace("_", "."): value for key, value in config.items()})
        [partition] = self.broker.make(name, config=read)
        return partition

    def data(self, name: str, *records: bytes) -> ProduceRequest.TopicData:
        data = [PartitionData(index=index, records=one) for index, one in enumerate(records)]
        return ProduceRequest.TopicData(name=name, topic_id=self.broker.view().topics[name].id, partition_data=data)

    def begin(self, name: str, *records: bytes, version: int = 9) -> Deferred[ProduceResponse]:
        """
        Begin a request, as far as it gets at once.
        """
        data = self.data(name, *records)
        result = self.start(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data]), version)
        self.serving.clock.advance(0)
        return result


class MessageSetTests(ConvertedTestCase):
    def test_message_sets_become_batches(self) -> None:
        """
        The answer has the offset.
        """
        for count, version in enumerate(OLD):
            [answer] = self.ask(self.request(SET), version)
            self.assertEqual((0, ErrorCode.NONE, 3 * count), (answer.index, answer.error_code, answer.base_offset))
            stored = read_batch(self.stored()[-1])
            found = [record._replace(offset=record.offset - 3 * count) for record in records(stored)]
            self.assertEqual((ROWS, Codec.GZIP), (found, stored.header.codec))

    def test_messages_without_timestamps(self) -> None:
        """
        Magic 0 has none; a topic with LogAppendTime sets them.
        """
        self.ask(self.request(handmade_set(ROWS, 0, Codec.NONE)), 2)
        self.assertEqual({-1}, {record.timestamp for record in records(read_batch(self.stored()[0]))})
        config = TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME)
        [partition] = self.broker.make("stamped", config=config)
        [answer] = self.ask(self.request(handmade_set(ROWS, 0, Codec.NONE), name="stamped"), 2)
        self.assertEqual(START_MS, answer.log_append_time_ms)
        self.assertEqual(3, partition.log_end)

    def test_an_empty_set_is_accepted(self) -> None:
        """
        Nothing is written.
        """
        for version in OLD:
            for nothing in (b"", None, SET[:20]):
                [answer] = self.ask(self.request(nothing), version)
                self.assertEqual((ErrorCode.NONE, -1), (answer.error_code, answer.base_offset), version)
        self.assertEqual([], self.stored())

    def test_a_refused_set_does_not_hinder_others(self) -> None:
        for version in OLD:
            answers = self.ask(self.request(SET[:-1] + b"x", SET), version)
            codes = [answer.error_code for answer in answers]
            self.assertEqual([ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE], codes, version)
            self.assertEqual([0, 1], [answer.index for answer in answers])

    def test_unknown_partitions_convert_nothing(self) -> None:
        result = self.start(self.request(SET, first=7), 2)
        self.serving.clock.advance(0)
        self.assertEqual([], self.threads)
        [answer] = self.answers(result)
        self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, answer.error_code)

    def test_acks_0_has_no_response(self) -> None:
        """
        A failure closes the connection.
        """
        for records_sent, told in ((SET, None), (SET[:-1] + b"x", "a Produce with acks=0 failed")):
            result = self.start(self.request(records_sent, acks=0), 2)
            self.assertNoResult(result)
            self.end_all()
            self.assertIsNone(self.successResultOf(result))
            self.assertEqual(told, self.serving.context.hang_up and self.serving.context.hang_up[: len(told or "")])

    def test_the_response_waits_for_the_commit(self) -> None:
        """
        The request limits the wait.
        """
        self.partitions[0].committed = Deferred()
        result = self.start(self.request(SET), 2)
        self.end_all()
        self.assertNoResult(result)
        self.assertIsNone(self.serving.request.topic_data[0].partition_data[0].records, "the log has them")
        self.serving.clock.advance(5)
        [answer] = self.answers(result)
        self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, answer.error_code)


class CompressionTests(ConvertedTestCase):
    def test_only_topics_with_compression_wait(self) -> None:
        """
        Those without a compression.type are written at once, and all are answered in order.
        """
        packed = self.make("packed", compression_type="gzip")
        both = [self.data("packed", batch()), self.data("orders", batch(), batch())]
        result = self.start(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=both), 12)
        self.assertEqual((0, 1, 1), (packed.log_end, self.partitions[0].log_end, self.partitions[1].log_end))
        self.end_all()
        answered = self.successResultOf(result).responses
        self.assertEqual(["packed", "orders"], [topic.name for topic in answered])
        self.assertEqual([1, 2], [len(topic.partition_responses) for topic in answered])
        self.assertEqual(1, packed.log_end)

    def test_other_batches_use_no_thread(self) -> None:
        """
        They are written at once.
        """
        self.successResultOf(self.begin("orders", batch()))
        self.assertEqual([], self.threads)

    def test_requests_of_a_connection_keep_their_order(self) -> None:
        """
        It does not matter which conversion ends first, or whether there is one.
        """
        packed = self.make("packed", compression_type="gzip")
        results = [
            self.begin("packed", batch(b"0" * 50)),
            self.begin("packed", batch(b"1" * 50)),
            self.begin("packed", batch(b"2" * 50, codec=Codec.GZIP)),
            self.begin("orders", batch(b"3" * 50)),
        ]
        self.assertEqual(2, len(self.threads))
        self.end(1)
        self.assertEqual([0, 0], [packed.log_end, self.partitions[0].log_end])
        self.end_all()
        offsets = [self.answers(result)[0].base_offset for result in results]
        self.assertEqual([0, 1, 2, 0], offsets)
        found = [bytes(one) for one in packed.read(0, 1 << 20, 0, True).batches]
        values = [record.value for one in found for record in records(read_batch(one))]
        self.assertEqual([b"0" * 50, b"1" * 50, b"2" * 50], values)
        self.assertIsNone(self.serving.session.appending)

    def test_later_batches_do_not_wait(self) -> None:
        """
        Once everything is appended they are written at once again.
        """
        self.make("packed", compression_type="gzip")
        self.begin("packed", batch(b"0" * 50))
        self.end_all()
        self.successResultOf(self.begin("orders", batch()))

    def test_other_connections_do_not_wait(self) -> None:
        self.make("packed", compression_type="gzip")
        self.begin("packed", batch(b"0" * 50))
        self.serving.session = type(self.serving.session)(
            **{name: getattr(self.serving.session, name) for name in ("listener", "host", "local")}
        )
        self.successResultOf(self.begin("orders", batch()))

    def test_batches_behind_a_refused_one_are_written(self) -> None:
        packed = self.make("packed", compression_type="gzip")
        failed, written = self.begin("packed", batch()[:-1] + b"x"), self.begin("packed", batch())
        self.end_all()
        self.assertEqual(ErrorCode.CORRUPT_MESSAGE, self.answers(failed)[0].error_code)
        self.assertEqual((0, 1), (self.answers(written)[0].base_offset, packed.log_end))

    def test_sequences_are_checked(self) -> None:
        """
        A duplicate of an idempotent producer is recognized, and a batch out of order refused.
        """
        packed = self.make("packed", compression_type="gzip")

        def send(sequence: int) -> tuple[int, int]:
            sent = batch(b"v" * 50, producer_id=7, producer_epoch=0, base_sequence=sequence)
            result = self.begin("packed", sent)
            self.end_all()
            [answer] = self.answers(result)
            return answer.error_code, answer.base_offset

        self.assertEqual([(0, 0), (0, 1), (0, 0)], [send(0), send(1), send(0)])
        self.assertEqual((ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), send(5))
        self.assertEqual(2, packed.log_end)

    def test_both_sizes_are_limited(self) -> None:
        """
        The batch is checked as it arrives, and as it is stored.
        """
        sent = batch(b"v" * 5_000, codec=Codec.GZIP)
        self.make("packed", compression_type="uncompressed", max_message_bytes=str(len(sent)))
        result = self.begin("packed", sent)
        self.end_all()
        self.assertEqual(ErrorCode.MESSAGE_TOO_LARGE, self.answers(result)[0].error_code)

    def test_converted_batches_may_have_log_append_time(self) -> None:
        partition = self.make("packed", compression_type="gzip", message_timestamp_type="LogAppendTime")
        result = self.begin("packed", batch(b"v" * 50))
        self.end_all()
        self.assertEqual(START_MS, self.answers(result)[0].log_append_time_ms)
        stored = read_batch(partition.read(0, 1 << 20, 0, True).batches[0])
        self.assertEqual(Codec.GZIP, stored.header.codec)
        self.assertEqual([START_MS], [record.timestamp for record in records(stored)])


class JudgingTests(ConvertedTestCase):
    """
    Topics that check each record.
    """

    def test_many_records_are_checked_in_slices(self) -> None:
        """
        Other work runs in between, later requests wait, and each record is checked once.
        """
        partition = self.make("keys", cleanup_policy="compact")
        for sent in (keyed(AT_ONCE_MAX + 1), keyed(2, codec=Codec.ZSTD)):
            end = partition.log_end
            with patch.object(admission, "payload_of", wraps=payload_of) as opened:
                results = [self.begin("keys", sent), self.begin("keys", keyed(1))]
                self.assertEqual(end, partition.log_end)
                self.end_all()
            self.assertEqual(2, opened.call_count)
            count = read_batch(sent).header.records_count
            self.assertEqual([end, end + count], [self.answers(result)[0].base_offset for result in results])

    def test_few_records_are_checked_at_once(self) -> None:
        """
        Other topics check none.
        """
        for name, config, sent in (
            ("keys", {"cleanup_policy": "compact"}, keyed(AT_ONCE_MAX)),
            ("young", {"message_timestamp_before_max_ms": "1000"}, keyed(1)),
            ("plain", {}, keyed(AT_ONCE_MAX + 1, codec=Codec.ZSTD)),
            ("stamped", {"message_timestamp_type": "LogAppendTime"}, keyed(AT_ONCE_MAX + 1)),
        ):
            self.make(name, **config)
            self.successResultOf(self.begin(name, sent))

    def test_a_bad_record_is_named_anywhere(self) -> None:
        self.make("keys", cleanup_policy="compact")
        self.make("young", message_timestamp_before_max_ms="1000")
        for name, last in (("keys", (None, START_MS)), ("young", (b"key", START_MS - 1_001))):
            result = self.begin(name, keyed(AT_ONCE_MAX, last))
            self.end_all()
            [answer] = self.answers(result)
            self.assertEqual([AT_ONCE_MAX], [error.batch_index for error in answer.record_errors])
            self.assertEqual(0, self.broker.partition(self.broker.view().topics[name].id, 0).log_end)

    def test_the_header_is_checked_first(self) -> None:
        """
        A bad one is refused before any work.
        """
        self.make("keys", cleanup_policy="compact", max_message_bytes="1000")
        result = self.begin("keys", keyed(AT_ONCE_MAX + 1))
        self.assertEqual([], self.threads)
        self.assertEqual(ErrorCode.MESSAGE_TOO_LARGE, self.answers(result)[0].error_code)


def keyed(count: int, *more: tuple[bytes | None, int], codec: Codec = Codec.NONE) -> bytes:
    """
    A batch of `count` records with keys and timestamps.
    """
    builder = BatchBuilder(codec=codec)
    for key, timestamp in [*[(b"key", START_MS)] * count, *more]:
        builder.append(key, b"value", timestamp=timestamp)
    return bytes(builder.build())
