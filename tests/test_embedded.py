"""
Topics and records without a socket.
"""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Appended, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.config.settings import Settings
from kgateway.embedded import Embedded, KeyValue, Watermarks
from kgateway.records.batch import batches
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.server.gateway import Gateway
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import START_MS

ONE, TWO, THREE = (b"a", b"one"), (None, b"two"), (b"a", None)


class Later:
    """
    A partition that responds when the test says so.
    """

    def __init__(self) -> None:
        self.committed: Deferred[None] = Deferred()
        self.found: Deferred[Read] = Deferred()
        self.asked: list[tuple[int, int, Isolation, bool]] = []

    def append(self, batch: Any, origin: Any, client_id: str | None = None) -> Appended:
        return Appended(5, -1, 0, stored=succeed(None), committed=self.committed)

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool) -> Deferred[Read]:
        self.asked.append((offset, max_bytes, isolation, at_least_one))
        return self.found


class EmbeddedTests(SynchronousTestCase):
    def setUp(self) -> None:
        settings = Settings(listen=(), broker="memory:", num_partitions=3)
        self.gateway = Gateway(settings, MemoryReactorClock(), now_ms=lambda: START_MS, plugins=())
        self.topics = Embedded(self.gateway)

    def done(self, work: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(work))

    def refusal(self, work: Any) -> KafkaError:
        error: KafkaError = self.failureResultOf(Deferred.fromCoroutine(work), KafkaError).value
        return error

    def create(self, **options: Any) -> Topic:
        topic: Topic = self.done(self.topics.create_topic("orders", **options))
        return topic

    def produce(self, *values: KeyValue, **options: Any) -> int:
        offset: int = self.done(self.topics.produce("orders", values, **options))
        return offset

    def fetch(self, offset: int = 0, partition: int = 0, **options: Any) -> list[Record]:
        found: list[Record] = self.done(self.topics.fetch("orders", partition, offset, **options))
        return found

    def later(self) -> Later:
        """
        Use such a partition for every topic.
        """
        partition = Later()
        self.patch(self.gateway.broker, "partition", lambda topic_id, index: partition)
        return partition

    def test_a_topic_is_created(self) -> None:
        """
        It has the default number of partitions or another one, and configs.
        """
        assert len(self.create().partitions) == 3
        made = self.done(self.topics.create_topic("few", 1, {"retention.ms": "5000"}))
        assert (made.name, len(made.partitions)) == ("few", 1)
        assert made.config.overrides == {"retention.ms": "5000"}

    def test_an_existing_topic_is_refused(self) -> None:
        self.create()
        assert self.refusal(self.topics.create_topic("orders")).code == ErrorCode.TOPIC_ALREADY_EXISTS

    def test_records_come_back(self) -> None:
        """
        Keys and values, of which either may be null, are at consecutive offsets; `produce` returns the first.
        """
        self.create()
        assert [self.produce(ONE, TWO), self.produce(THREE)] == [0, 2]
        found = [(record.offset, record.key, record.value) for record in self.fetch()]
        assert found == [(0, b"a", b"one"), (1, None, b"two"), (2, b"a", None)]

    def test_partitions_are_separate_logs(self) -> None:
        """
        The default is the first one.
        """
        self.create()
        assert [self.produce(ONE), self.produce(TWO, partition=2)] == [0, 0]
        assert [len(self.fetch(partition=partition)) for partition in range(3)] == [1, 0, 1]

    def test_the_gateway_sets_the_time(self) -> None:
        """
        Records may have a given time instead.
        """
        self.create()
        self.produce(ONE)
        self.produce(TWO, timestamp_ms=17)
        assert [record.timestamp for record in self.fetch()] == [START_MS, 17]

    def test_records_are_one_batch(self) -> None:
        """
        The batch is compressed on request.
        """
        topic = self.create()
        self.produce(ONE, TWO, THREE, codec=Codec.ZSTD)
        read: Any = self.gateway.broker.partition(topic.id, 0).read(0, 1 << 20, Isolation.READ_UNCOMMITTED, True)
        [batch] = [batch for data in read.batches for batch in batches(data)]
        assert (batch.header.codec, batch.header.records_count) == (Codec.ZSTD, 3)
        assert [record.value for record in self.fetch()] == [b"one", b"two", None]

    def test_no_records_are_a_mistake(self) -> None:
        """
        A batch has at least one record.
        """
        self.create()
        self.failureResultOf(Deferred.fromCoroutine(self.topics.produce("orders", [])), ValueError)

    def test_produce_waits_for_the_commit(self) -> None:
        """
        It waits as acks=all does.
        """
        self.create()
        partition = self.later()
        produced = Deferred.fromCoroutine(self.topics.produce("orders", [ONE]))
        self.assertNoResult(produced)
        partition.committed.callback(None)
        assert self.successResultOf(produced) == 5

    def test_fetch_waits_for_the_disk(self) -> None:
        """
        Records may not be in memory.
        """
        self.create()
        partition = self.later()
        fetched = Deferred.fromCoroutine(self.topics.fetch("orders", 0, 4, max_bytes=99, committed=True))
        self.assertNoResult(fetched)
        partition.found.callback(Read([], 0, 4, 4, 0))
        assert self.successResultOf(fetched) == []
        assert partition.asked == [(4, 99, Isolation.READ_COMMITTED, True)]

    def test_fetch_begins_at_the_offset(self) -> None:
        """
        The offset may be in the middle of a batch; at the end there is nothing yet.
        """
        self.create()
        self.produce(ONE, TWO, THREE)
        self.produce(ONE)
        assert [record.offset for record in self.fetch(1)] == [1, 2, 3]
        assert self.fetch(4) == []

    def test_fetch_takes_as_much_as_fits(self) -> None:
        """
        It returns whole batches, and at least one.
        """
        self.create()
        for _ in range(3):
            self.produce(ONE)
        size = len(self.fetch(max_bytes=1))
        assert size == 1
        assert len(self.fetch()) == 3

    def test_errors_have_codes(self) -> None:
        """
        A client would get the same codes.
        """
        self.create()
        asked: list[tuple[Callable[..., Any], tuple[Any, ...], ErrorCode]] = [
            (self.topics.fetch, ("payments", 0, 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (self.topics.fetch, ("orders", 3, 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (self.topics.fetch, ("orders", 0, 1), ErrorCode.OFFSET_OUT_OF_RANGE),
            (self.topics.produce, ("payments", [ONE]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        for method, arguments, code in asked:
            assert self.refusal(method(*arguments)).code == code, arguments
        with pytest.raises(KafkaError, match="there is no topic payments"):
            self.topics.watermarks("payments", 0)

    def test_watermarks(self) -> None:
        """
        They are the start and the end of a partition's log.
        """
        self.create()
        self.produce(ONE, TWO)
        assert self.topics.watermarks("orders", 0) == Watermarks(log_start=0, high_watermark=2, log_end=2)

    def test_stats(self) -> None:
        """
        They have the numbers of topics and partitions, and what the gateway knows of its clients.
        """
        assert self.topics.stats() == {"topics": 0, "partitions": 0, "connections": 0, "request_bytes": 0}
        self.create()
        assert self.topics.stats()["topics"] == 1
        assert self.topics.stats()["partitions"] == 3
