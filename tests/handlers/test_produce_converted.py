"""
Produce, where something has to be made first of what came.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from twisted.internet.defer import Deferred

from kgateway.broker import admission
from kgateway.cluster.config import TopicConfig
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import TimestampType, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.payload import payload_of
from kgateway.records.record import Record, records
from kgateway.records.steps import AT_ONCE_MAX
from kgateway.wire.errors import ErrorCode
from tests.fetching.rigged import batch
from tests.handlers.test_produce import Answer, PartitionData, ProduceTestCase
from tests.records.old_sets import handmade_set
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
        Let those threads end that have begun, or those at these places.
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
        A request, as far as it goes at once.
        """
        data = self.data(name, *records)
        result = self.start(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data]), version)
        self.serving.clock.advance(0)
        return result


class MessageSetTests(ConvertedTestCase):
    def test_sets_become_batches(self) -> None:
        """
        A message set is stored as a batch, and the answer tells its place.
        """
        for count, version in enumerate(OLD):
            [answer] = self.ask(self.request(SET), version)
            self.assertEqual((0, ErrorCode.NONE, 3 * count), (answer.index, answer.error_code, answer.base_offset))
            stored = read_batch(self.stored()[-1])
            found = [record._replace(offset=record.offset - 3 * count) for record in records(stored)]
            self.assertEqual((ROWS, Codec.GZIP), (found, stored.header.codec))

    def test_without_timestamps(self) -> None:
        """
        Messages of magic 0 have none; where the topic has LogAppendTime, they get that.
        """
        self.ask(self.request(handmade_set(ROWS, 0, Codec.NONE)), 2)
        self.assertEqual({-1}, {record.timestamp for record in records(read_batch(self.stored()[0]))})
        config = TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME)
        [partition] = self.broker.make("stamped", config=config)
        [answer] = self.ask(self.request(handmade_set(ROWS, 0, Codec.NONE), name="stamped"), 2)
        self.assertEqual(START_MS, answer.log_append_time_ms)
        self.assertEqual(3, partition.log_end)

    def test_nothing(self) -> None:
        """
        Where there is no message nothing is written, and nothing wrong.
        """
        for version in OLD:
            for nothing in (b"", None, SET[:20]):
                [answer] = self.ask(self.request(nothing), version)
                self.assertEqual((ErrorCode.NONE, -1), (answer.error_code, answer.base_offset), version)
        self.assertEqual([], self.stored())

    def test_refusals(self) -> None:
        """
        A set that cannot be taken is refused, and those beside it are written.
        """
        for version in OLD:
            answers = self.ask(self.request(SET[:-1] + b"x", SET), version)
            codes = [answer.error_code for answer in answers]
            self.assertEqual([ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE], codes, version)
            self.assertEqual([0, 1], [answer.index for answer in answers])

    def test_partitions_that_are_not_here(self) -> None:
        """
        For a partition that is not here no work is done.
        """
        result = self.start(self.request(SET, first=7), 2)
        self.serving.clock.advance(0)
        self.assertEqual([], self.threads)
        [answer] = self.answers(result)
        self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, answer.error_code)

    def test_no_acks(self) -> None:
        """
        Who wants no answer gets none; after a failure, the connection is closed.
        """
        for records_sent, told in ((SET, None), (SET[:-1] + b"x", "a Produce with acks=0 failed")):
            result = self.start(self.request(records_sent, acks=0), 2)
            self.assertNoResult(result)
            self.end_all()
            self.assertIsNone(self.successResultOf(result))
            self.assertEqual(told, self.serving.context.hang_up and self.serving.context.hang_up[: len(told or "")])

    def test_acknowledgement(self) -> None:
        """
        Where what was appended is not safe yet, the answer waits, for as long as its request says.
        """
        self.partitions[0].safe = Deferred()
        result = self.start(self.request(SET), 2)
        self.end_all()
        self.assertNoResult(result)
        self.assertIsNone(self.serving.request.topic_data[0].partition_data[0].records, "the log has them")
        self.serving.clock.advance(5)
        [answer] = self.answers(result)
        self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, answer.error_code)


class CompressionTests(ConvertedTestCase):
    def test_only_such_topics_wait(self) -> None:
        """
        Of the topics of a request, those without a compression.type are written at once, and all are answered in order.
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

    def test_without_it_nothing_waits(self) -> None:
        """
        Batches of other topics are written at once, and no thread is asked.
        """
        self.successResultOf(self.begin("orders", batch()))
        self.assertEqual([], self.threads)

    def test_order(self) -> None:
        """
        What comes through one connection is appended in the order in which it came, whichever is made first, and
        whether or not anything is to be made of it.
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

    def test_afterwards_nothing_waits(self) -> None:
        """
        Once all is appended, batches are written at once again.
        """
        self.make("packed", compression_type="gzip")
        self.begin("packed", batch(b"0" * 50))
        self.end_all()
        self.successResultOf(self.begin("orders", batch()))

    def test_other_connections(self) -> None:
        """
        Other connections do not wait.
        """
        self.make("packed", compression_type="gzip")
        self.begin("packed", batch(b"0" * 50))
        self.serving.session = type(self.serving.session)(
            **{name: getattr(self.serving.session, name) for name in ("listener", "host", "local")}
        )
        self.successResultOf(self.begin("orders", batch()))

    def test_after_a_failure(self) -> None:
        """
        What comes behind a batch that is refused is written.
        """
        packed = self.make("packed", compression_type="gzip")
        failed, written = self.begin("packed", batch()[:-1] + b"x"), self.begin("packed", batch())
        self.end_all()
        self.assertEqual(ErrorCode.CORRUPT_MESSAGE, self.answers(failed)[0].error_code)
        self.assertEqual((0, 1), (self.answers(written)[0].base_offset, packed.log_end))

    def test_sequences(self) -> None:
        """
        Of an idempotent producer, a batch that comes again is known, and one that is out of order refused.
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

    def test_too_large_afterwards(self) -> None:
        """
        The size of a batch counts as it came, and as it is stored.
        """
        sent = batch(b"v" * 5_000, codec=Codec.GZIP)
        self.make("packed", compression_type="uncompressed", max_message_bytes=str(len(sent)))
        result = self.begin("packed", sent)
        self.end_all()
        self.assertEqual(ErrorCode.MESSAGE_TOO_LARGE, self.answers(result)[0].error_code)

    def test_stamped(self) -> None:
        """
        A topic may have LogAppendTime too.
        """
        partition = self.make("packed", compression_type="gzip", message_timestamp_type="LogAppendTime")
        result = self.begin("packed", batch(b"v" * 50))
        self.end_all()
        self.assertEqual(START_MS, self.answers(result)[0].log_append_time_ms)
        stored = read_batch(partition.read(0, 1 << 20, 0, True).batches[0])
        self.assertEqual(Codec.GZIP, stored.header.codec)
        self.assertEqual([START_MS], [record.timestamp for record in records(stored)])


class JudgingTests(ConvertedTestCase):
    """
    Topics that look at each record.
    """

    def test_many_records_take_their_time(self) -> None:
        """
        Where there are many, or may be, others go on; what comes behind them waits, and each is looked at once.
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

    def test_few_records_are_judged_at_once(self) -> None:
        """
        And of other topics none are.
        """
        for name, config, sent in (
            ("keys", {"cleanup_policy": "compact"}, keyed(AT_ONCE_MAX)),
            ("young", {"message_timestamp_before_max_ms": "1000"}, keyed(1)),
            ("plain", {}, keyed(AT_ONCE_MAX + 1, codec=Codec.ZSTD)),
            ("stamped", {"message_timestamp_type": "LogAppendTime"}, keyed(AT_ONCE_MAX + 1)),
        ):
            self.make(name, **config)
            self.successResultOf(self.begin(name, sent))

    def test_the_one_to_blame(self) -> None:
        """
        Is told of, wherever it stands.
        """
        self.make("keys", cleanup_policy="compact")
        self.make("young", message_timestamp_before_max_ms="1000")
        for name, last in (("keys", (None, START_MS)), ("young", (b"key", START_MS - 1_001))):
            result = self.begin(name, keyed(AT_ONCE_MAX, last))
            self.end_all()
            [answer] = self.answers(result)
            self.assertEqual([AT_ONCE_MAX], [error.batch_index for error in answer.record_errors])
            self.assertEqual(0, self.broker.partition(self.broker.view().topics[name].id, 0).log_end)

    def test_a_header_is_judged_first(self) -> None:
        """
        What it tells of is refused before any work.
        """
        self.make("keys", cleanup_policy="compact", max_message_bytes="1000")
        result = self.begin("keys", keyed(AT_ONCE_MAX + 1))
        self.assertEqual([], self.threads)
        self.assertEqual(ErrorCode.MESSAGE_TOO_LARGE, self.answers(result)[0].error_code)


def keyed(count: int, *more: tuple[bytes | None, int], codec: Codec = Codec.NONE) -> bytes:
    """
    A batch of so many records with keys, and these keys and timestamps behind them.
    """
    builder = BatchBuilder(codec=codec)
    for key, timestamp in [*[(b"key", START_MS)] * count, *more]:
        builder.append(key, b"value", timestamp=timestamp)
    return bytes(builder.build())
