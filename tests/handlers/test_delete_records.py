"""
DeleteRecords.
"""

from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.handlers.delete_records import delete_records
from kgateway.interfaces import IPartition
from kgateway.messages.delete_records import DeleteRecordsRequest
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import batch
from tests.serving import Denying, Serving

VERSIONS = range(3)
Topic = DeleteRecordsRequest.Topic
Told = tuple[str, int, int, int]


class DeleteRecordsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        self.make("orders")

    def make(self, name: str, internal: bool = False, **config: Any) -> None:
        """
        A topic of two partitions with five records each.
        """
        broker = self.serving.broker
        topic = self.successResultOf(broker.create_topic(NewTopic(name, 2, TopicConfig(**config), internal)))
        for index in range(2):
            broker.partition(topic.id, index).append(batch(5), Origin.COORDINATOR)

    def partition(self, name: str, index: int) -> IPartition:
        return self.serving.broker.partition(self.serving.broker.view().topics[name].id, index)

    def begin(self, *asked: tuple[str, dict[int, int]], timeout_ms: int = 1000, version: int = 2) -> Deferred[Any]:
        topics = [
            Topic(name=name, partitions=[Topic.Partition(partition_index=n, offset=at) for n, at in offsets.items()])
            for name, offsets in asked
        ]
        return self.serving.ask(delete_records, DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms), version)

    def told(self, answer: Deferred[Any]) -> list[Told]:
        topics = self.successResultOf(answer).topics
        return [
            (topic.name, one.partition_index, one.low_watermark, one.error_code)
            for topic in topics
            for one in topic.partitions
        ]

    def ask(self, *asked: tuple[str, dict[int, int]], version: int = 2) -> list[Told]:
        return self.told(self.begin(*asked, version=version))

    def refused(self, name: str, offset: int = 1, index: int = 0) -> ErrorCode:
        """
        The error, after checking that nothing was deleted and the reason is remembered.
        """
        [(told_name, told_index, low, code)] = self.ask((name, {index: offset}))
        assert (told_name, told_index, low) == (name, index, -1)
        [refusal] = self.serving.context.refusals or []
        assert refusal.subject == f"{name}-{index}"
        assert refusal.error.message
        return ErrorCode(code)

    def test_records_are_deleted(self) -> None:
        """
        This works in every version, for each partition by itself.
        """
        assert delete_records.versions == VERSIONS
        for version in VERSIONS:
            self.make(f"v{version}")
            told = self.ask((f"v{version}", {1: 3, 0: 1}), ("orders", {0: version}), version=version)
            assert told == [(f"v{version}", 1, 3, 0), (f"v{version}", 0, 1, 0), ("orders", 0, version, 0)], version
            assert self.partition(f"v{version}", 1).log_start == 3

    def test_minus_one_deletes_up_to_the_high_watermark(self) -> None:
        assert self.ask(("orders", {0: -1})) == [("orders", 0, 5, 0)]
        assert (self.partition("orders", 0).log_start, self.partition("orders", 1).log_start) == (5, 0)

    def test_deleted_offsets_are_answered_with_the_log_start(self) -> None:
        self.ask(("orders", {0: 4}))
        assert self.ask(("orders", {0: 2})) == [("orders", 0, 4, 0)]

    def test_the_last_offset_of_a_partition_counts(self) -> None:
        """
        There is one answer, even if the topic is named again.
        """
        twice = Topic.Partition(partition_index=0, offset=4)
        request = DeleteRecordsRequest(
            topics=[
                Topic(name="orders", partitions=[twice, Topic.Partition(partition_index=0, offset=3)]),
                Topic(name="nothing", partitions=[]),
                Topic(name="orders", partitions=[Topic.Partition(partition_index=1, offset=1)]),
                Topic(name="orders", partitions=[Topic.Partition(partition_index=0, offset=2)]),
            ],
            timeout_ms=1000,
        )
        answer = self.serving.ask(delete_records, request, 2)
        assert self.told(answer) == [("orders", 0, 2, 0), ("orders", 1, 1, 0)]
        answer = self.serving.ask(delete_records, request, 2)
        assert [topic.name for topic in self.successResultOf(answer).topics] == ["orders"]

    def test_impossible_deletions_are_refused(self) -> None:
        """
        They get Kafka's error codes, and nothing is deleted.
        """
        self.make("internal", internal=True)
        self.make("compacted", cleanup_policy=("compact",))
        self.make("both", cleanup_policy=("compact", "delete"))
        for offset in (-2, 6):
            assert self.refused("orders", offset) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert self.refused("missing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for index in (-1, 2):
            assert self.refused("orders", index=index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert self.refused("internal") is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert self.refused("compacted", 99) is ErrorCode.POLICY_VIOLATION
        assert self.ask(("both", {0: 1})) == [("both", 0, 1, 0)]
        for name in ("orders", "internal", "compacted"):
            assert self.partition(name, 0).log_start == 0, name

    def test_one_partition_does_not_hinder_others(self) -> None:
        """
        Its error may even be a bug.
        """

        def bug(offset: int) -> Deferred[int]:
            return fail(ValueError("a bug"))

        self.patch(self.partition("orders", 1), "delete_before", bug)
        told = self.ask(("orders", {1: 1, 2: 1, 0: 1}))
        assert told == [
            ("orders", 1, -1, ErrorCode.UNKNOWN_SERVER_ERROR),
            ("orders", 2, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("orders", 0, 1, 0),
        ]
        assert len(self.flushLoggedErrors(ValueError)) == 1

    def test_errors_of_the_broker_are_returned(self) -> None:
        for code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
            self.patch(
                self.partition("orders", 0),
                "delete_before",
                lambda offset, code=code: fail(KafkaError(code, "as the broker says")),
            )
            assert self.refused("orders") is code

    def test_all_partitions_begin_at_once(self) -> None:
        """
        None waits for another.
        """
        asked = list[int]()

        def never(offset: int) -> Deferred[int]:
            asked.append(offset)
            return Deferred()

        for index in range(2):
            self.patch(self.partition("orders", index), "delete_before", never)
        self.begin(("orders", {0: 3, 1: 4}))
        assert asked == [3, 4]

    def test_slow_deletions_time_out(self) -> None:
        """
        They continue after the response.
        """
        late = Deferred[int]()
        self.patch(self.partition("orders", 0), "delete_before", lambda offset: late)
        answer = self.begin(("orders", {0: 3, 1: 4}), timeout_ms=500)
        self.assertNoResult(answer)
        self.serving.clock.advance(0.5)
        assert self.told(answer) == [("orders", 0, -1, ErrorCode.REQUEST_TIMED_OUT), ("orders", 1, 4, 0)]
        assert not late.called
        late.callback(3)

    def test_permission_is_needed(self) -> None:
        """
        To a client without it existing and unknown topics look alike.
        """
        delete = (Operation.DELETE, Resource.TOPIC, "orders")
        self.serving = Serving(Denying(lambda *asked: asked == delete or asked[2] == "missing"))
        self.make("orders")
        self.make("others")
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert self.refused("orders") is self.refused("missing") is self.refused("orders", index=9) is denied
        assert self.ask(("others", {0: 1})) == [("others", 0, 1, 0)]
        assert self.partition("orders", 0).log_start == 0
