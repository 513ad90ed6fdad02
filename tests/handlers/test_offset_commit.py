"""
OffsetCommit.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Appended
from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.handlers.offset_commit import offset_commit
from kgateway.interfaces import KeyValue
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.permissions import Operation, Resource
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, Uuid
from tests.groups.empty_groups import empty_classic
from tests.serving import START_MS, Denying, Serving

VERSIONS = range(11)
Topic = OffsetCommitRequest.Topic
Partition = Topic.Partition


class OffsetCommitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serve()

    def serve(self, **settings: Any) -> None:
        self.serving = Serving(**settings)
        topics = [self.successResultOf(self.serving.broker.create_topic(NewTopic(n, 2))) for n in ("orders", "returns")]
        self.ids = {topic.name: topic.id for topic in topics}

    def groups(self) -> GroupCoordinator:
        return self.serving.parts.service(GroupCoordinator)

    def begin(self, version: int, *partitions: Partition, **more: Any) -> Deferred[Any]:
        """
        Commit partitions of `orders`, or of the given topics.
        """
        fields: dict[str, Any] = {
            "group_id": "g",
            "member_id": "",
            "topics": [Topic(name="orders", topic_id=self.ids["orders"], partitions=list(partitions))],
        }
        return self.serving.ask(offset_commit, OffsetCommitRequest(**fields | more), version)

    def commit(self, version: int, *partitions: Partition, **more: Any) -> list[tuple[str | Uuid, int, int]]:
        """
        The answers: topic, partition, code.
        """
        response = self.successResultOf(self.begin(version, *partitions, **more))
        return [
            (topic.topic_id if version >= 10 else topic.name, partition.partition_index, partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        ]

    def codes(self, version: int, *partitions: Partition, **more: Any) -> list[int]:
        return [code for _, _, code in self.commit(version, *partitions, **more)]

    def at(self, index: int = 0, topic: str = "orders") -> OffsetCommitValue | None:
        return self.groups().offsets("g").at(topic, index)

    def test_all_versions_are_served(self) -> None:
        """
        The next request may start before the response.
        """
        assert offset_commit.versions == VERSIONS
        assert offset_commit.overlaps

    def test_a_very_long_retention_has_no_overflow(self) -> None:
        """
        Such offsets expire at the end of time.
        """
        partition = Partition(partition_index=0, committed_offset=3, committed_metadata="")
        assert self.commit(2, partition, retention_time_ms=(1 << 63) - 1) == [("orders", 0, ErrorCode.NONE)]
        committed = self.groups().offsets("g").at("orders", 0)
        assert committed
        assert committed.expire_timestamp == (1 << 63) - 1

    def test_members_with_epochs_need_a_newer_version(self) -> None:
        """
        A member of the consumer protocol commits with a version that has member epochs.
        """
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        joined = self.successResultOf(self.serving.ask(consumer_group_heartbeat, joining, 1))
        asked = {"member_id": "m", "generation_id_or_member_epoch": joined.member_epoch}
        for version in VERSIONS[2:]:
            expected = ErrorCode.NONE if version >= 9 else ErrorCode.UNSUPPORTED_VERSION
            [(_, _, code)] = self.commit(
                version, Partition(partition_index=0, committed_offset=3, committed_metadata=""), **asked
            )
            assert code == expected, version

    def test_topics_without_partitions_are_not_answered(self) -> None:
        """
        So it is in Kafka.
        """
        for version in VERSIONS:
            assert self.successResultOf(self.begin(version)).topics == [], version

    def test_a_simple_consumer_creates_its_group(self) -> None:
        """
        It is no member, and may use each version.
        """
        for version in VERSIONS:
            name = self.ids["orders"] if version >= 10 else "orders"
            answer = self.commit(version, part(0, version), part(1, 100 + version, "note"))
            assert answer == [(name, 0, 0), (name, 1, 0)], version
            kept = [self.at(index) for index in range(2)]
            assert [(one.offset, one.metadata) for one in kept if one] == [(version, ""), (100 + version, "note")]
        assert self.groups().find("g").state == "Empty"

    def test_commits_are_stored_with_their_context(self) -> None:
        """
        They have the leader epoch, where the version has it, the time and the topic's id.
        """
        for version in VERSIONS:
            self.commit(version, part(0, 7, committed_leader_epoch=3))
            kept = self.at()
            assert kept
            assert kept.leader_epoch == (3 if version >= 6 else -1), version
            assert (kept.commit_timestamp, kept.expire_timestamp) == (START_MS, -1)
            assert kept.topic_id == self.ids["orders"]

    def test_times_of_old_versions(self) -> None:
        """
        v1 has a commit time, v2 to v4 a retention time.
        """
        self.commit(1, part(0, 7, commit_timestamp=5), part(1, 7))
        assert [one and one.commit_timestamp for one in (self.at(0), self.at(1))] == [5, START_MS]
        for version in (2, 3, 4):
            self.commit(version, part(0, 7), retention_time_ms=1_000)
            assert self.at().expire_timestamp == START_MS + 1_000  # type: ignore[union-attr]
            self.commit(version, part(0, 7))
            assert self.at().expire_timestamp == -1  # type: ignore[union-attr]

    def test_unknown_topics_and_partitions_are_refused(self) -> None:
        """
        The code is that of the version; the rest is committed.
        """
        for version in VERSIONS:
            topics = [
                Topic(name="missing", topic_id=ONE, partitions=[part(0, 1)]),
                Topic(
                    name="orders", topic_id=self.ids["orders"], partitions=[part(2, 1), part(1, version), part(-1, 1)]
                ),
            ]
            missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert self.codes(version, topics=topics) == [missing, unknown, 0, unknown], version
            assert self.at(1).offset == version  # type: ignore[union-attr]
            assert len(self.serving.context.refusals or ()) == 3

    def test_an_empty_commit_creates_no_group(self) -> None:
        topics = [Topic(name="missing", topic_id=ONE, partitions=[part(0, 1)])]
        assert self.codes(9, topics=topics, generation_id_or_member_epoch=5) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert self.codes(9, topics=[]) == []
        assert "__consumer_offsets" not in self.serving.broker.view().topics

    def test_long_metadata_is_refused(self) -> None:
        """
        The configured limit applies to each partition.
        """
        self.serve(offset_metadata_max_bytes=4)
        for version in VERSIONS:
            codes = self.codes(version, part(0, version, "12345"), part(1, version, "1234"))
            assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0], version
        assert self.at(0) is None

    def test_unknown_groups_are_refused(self) -> None:
        """
        A member gets GROUP_ID_NOT_FOUND, in older versions ILLEGAL_GENERATION.
        """
        for version in VERSIONS[1:]:
            wanted = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
            codes = self.codes(version, part(0, 1), part(1, 1), generation_id_or_member_epoch=0, member_id="m")
            assert codes == [wanted] * 2, version
            [refusal] = self.serving.context.refusals or []
            assert refusal.subject == "g"
        assert self.codes(9, part(0, 1), part(5, 1), generation_id_or_member_epoch=0) == [
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    def test_the_group_fences_commits(self) -> None:
        """
        It sees all fields of the client.
        """
        group = empty_classic(self.groups(), "g")
        asked: list[Any] = []

        def check(*arguments: Any, **named: Any) -> None:
            asked.append((*arguments, named["transactional"]))
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, "no")

        self.patch(group, "check_commit", check)
        for version in VERSIONS[7:]:
            codes = self.codes(
                version, part(0, 1), generation_id_or_member_epoch=3, member_id="m", group_instance_id="i"
            )
            assert codes == [ErrorCode.FENCED_INSTANCE_ID], version
        assert asked == [("m", "i", 3, False)] * 4
        assert self.at() is None

    def test_one_fenced_partition_fails_the_commit(self) -> None:
        """
        Some groups check each partition.
        """
        group = empty_classic(self.groups(), "g")

        def one(topic_id: Uuid, index: int) -> None:
            if (topic_id, index) == (self.ids["orders"], 1):
                raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "it was not yours")

        self.patch(group, "check_commit", lambda *_, **__: one)
        assert self.codes(9, part(0, 1)) == [0]
        assert self.codes(9, part(0, 2), part(1, 2)) == [ErrorCode.STALE_MEMBER_EPOCH] * 2
        assert self.at().offset == 1  # type: ignore[union-attr]

    def test_the_response_waits_for_the_write(self) -> None:
        """
        It reports success or failure then.
        """
        empty_classic(self.groups(), "g")
        waiting: list[Deferred[None]] = []

        def commit(_: Any) -> Deferred[None]:
            waiting.append(Deferred())
            return waiting[-1]

        self.patch(self.groups().offsets("g"), "commit", commit)
        good, bad = self.begin(9, part(0, 1)), self.begin(9, part(0, 1))
        self.assertNoResult(good)
        waiting[0].callback(None)
        waiting[1].errback(KafkaError(ErrorCode.NOT_COORDINATOR, "lost"))
        codes = [self.successResultOf(answer).topics[0].partitions[0].error_code for answer in (good, bad)]
        assert codes == [0, ErrorCode.NOT_COORDINATOR]

    def test_the_empty_group_may_commit(self) -> None:
        """
        As in Kafka, old consumers without a group use it.
        """
        assert self.codes(8, part(0, 1), group_id="") == [0]

    def test_permission_is_needed(self) -> None:
        """
        Without it on the group nothing is committed; topics fail one by one.
        """
        self.serving.parts.authorizer = Denying(lambda operation, resource, name: name == "orders")
        for version in VERSIONS:
            topics = [Topic(name=name, topic_id=self.ids[name], partitions=[part(0, 1)]) for name in self.ids]
            assert self.codes(version, topics=topics) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0], version
        assert self.at() is None
        authorizer = self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        error = self.failureResultOf(self.failing(8), KafkaError).value
        assert error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert authorizer.asked == [(Operation.READ, Resource.GROUP, "g")]

    def failing(self, version: int) -> Deferred[Any]:
        return maybeDeferred(self.begin, version, part(0, 1))

    def test_a_commit_is_one_batch(self) -> None:
        """
        The number of partitions does not matter.
        """
        self.commit(9, part(0, 1))
        log = self.serving.broker.coordinator(Resource.GROUP, "g")
        appended: list[int] = []
        append = log.append

        def counted(records: Sequence[KeyValue], producer: None) -> Appended:
            appended.append(len(records))
            return append(records)

        self.patch(log, "append", counted)
        topics = [Topic(name=name, partitions=[part(0, 1), part(1, 1)]) for name in self.ids]
        self.commit(9, topics=topics)
        assert appended == [4]
        assert {place for place, _ in self.groups().offsets("g")} == {
            TopicPartition(n, i) for n in self.ids for i in range(2)
        }


def part(index: int, offset: int, text: str | None = None, **more: Any) -> Partition:
    return Partition(partition_index=index, committed_offset=offset, committed_metadata=text, **more)
