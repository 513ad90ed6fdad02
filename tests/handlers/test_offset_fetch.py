"""
OffsetFetch.
"""

from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.offset_fetch import offset_fetch
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.permissions import Operation, Resource
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE
from tests.serving import START_MS, Denying, Serving

VERSIONS = range(11)
NOTHING = (-1, "", 0)
Told = dict[tuple[str, int], tuple[int, str | None, int]]


class OffsetFetchTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        topics = [self.successResultOf(self.serving.broker.create_topic(NewTopic(n, 3))) for n in ("orders", "returns")]
        self.ids = {topic.name: topic.id for topic in topics} | {"missing": ONE}
        self.groups = self.serving.parts.service(GroupCoordinator)
        self.commit("g", "orders", 0, 40)
        self.commit("g", "returns", 1, 50)

    def commit(self, group_id: str, topic: str, index: int, offset: int) -> None:
        value = OffsetCommitValue(
            offset=offset, leader_epoch=6, metadata="note", commit_timestamp=START_MS, topic_id=self.ids[topic]
        )
        self.groups.entry_or_new(group_id).offsets.commit([(TopicPartition(topic, index), value)])

    def begin(self, version: int, wanted: dict[str, list[int]] | None, **more: Any) -> Deferred[Any]:
        """
        Fetch partitions of one group, in the form of the version.
        """
        group_id, stable = more.pop("group_id", "g"), more.pop("require_stable", False)
        old = OffsetFetchRequest.Topic
        new = OffsetFetchRequest.Group.Topic
        topics = new_topics = None
        if wanted is not None:
            topics = [old(name=name, partition_indexes=indexes) for name, indexes in wanted.items()]
            new_topics = [
                new(name=name, topic_id=self.ids[name], partition_indexes=indexes) for name, indexes in wanted.items()
            ]
        request = OffsetFetchRequest(
            group_id=group_id,
            topics=topics,
            groups=[OffsetFetchRequest.Group(group_id=group_id, topics=new_topics, **more)],
            require_stable=stable,
        )
        return maybeDeferred(self.serving.ask, offset_fetch, request, version)

    def fetch(self, version: int, wanted: dict[str, list[int]] | None, **more: Any) -> Told:
        """
        Offset, metadata and code of each partition.
        """
        response = self.successResultOf(self.begin(version, wanted, **more))
        names = {topic_id: name for name, topic_id in self.ids.items()}
        whole = response.groups[0] if version >= 8 else response
        assert whole.error_code == 0
        return {
            (names[topic.topic_id] if version >= 10 else topic.name, one.partition_index): (
                one.committed_offset,
                one.metadata,
                one.error_code,
            )
            for topic in whole.topics
            for one in topic.partitions
        }

    def code(self, version: int, **more: Any) -> int:
        """
        The code of a whole group.
        """
        answer = self.begin(version, {"orders": [0]}, **more)
        if version < 8:
            return int(self.failureResultOf(answer, KafkaError).value.code)
        [group] = self.successResultOf(answer).groups
        assert group.topics == []
        return int(group.error_code)

    def test_all_versions_are_served(self) -> None:
        assert offset_fetch.versions == VERSIONS

    def test_offsets_are_fetched(self) -> None:
        """
        They have their metadata, and are -1 where nothing is committed.
        """
        for version in VERSIONS:
            told = self.fetch(version, {"orders": [0, 1], "returns": [1, 77]})
            assert told == {
                ("orders", 0): (40, "note", 0),
                ("orders", 1): NOTHING,
                ("returns", 1): (50, "note", 0),
                ("returns", 77): NOTHING,
            }, version

    def test_leader_epochs_are_returned(self) -> None:
        """
        The field exists from v5 on.
        """
        for version in VERSIONS[5:]:
            response = self.successResultOf(self.begin(version, {"orders": [0, 1]}))
            [topic] = (response.groups[0] if version >= 8 else response).topics
            assert [one.committed_leader_epoch for one in topic.partitions] == [6, -1], version

    def test_null_topics_are_all_topics(self) -> None:
        for version in VERSIONS[2:]:
            told = self.fetch(version, None)
            assert told == {("orders", 0): (40, "note", 0), ("returns", 1): (50, "note", 0)}, version
            assert self.fetch(version, None, group_id="unknown") == {}

    def test_deleted_topics_are_left_out(self) -> None:
        """
        Where topics have ids, a deleted one has none.
        """
        self.commit("h", "missing", 0, 7)
        for version in VERSIONS[2:]:
            told = {} if version >= 10 else {("missing", 0): (7, "note", 0)}
            assert self.fetch(version, None, group_id="h") == told, version

    def test_unknown_groups_have_no_offsets(self) -> None:
        """
        This is no error.
        """
        for version in VERSIONS:
            assert self.fetch(version, {"orders": [0]}, group_id="unknown") == {("orders", 0): NOTHING}, version
        assert [group.group_id for group in self.successResultOf(Deferred.fromCoroutine(self.groups.all()))] == ["g"]

    def test_unknown_ids_are_refused(self) -> None:
        """
        Unknown names are not.
        """
        for version in VERSIONS:
            code = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else 0
            assert self.fetch(version, {"missing": [0]}) == {("missing", 0): (-1, "", code)}, version

    def test_each_group_has_its_own_outcome(self) -> None:
        self.commit("h", "orders", 0, 7)
        self.serving.parts.authorizer = Denying(lambda _, resource, name: name == "secret")
        form = OffsetFetchRequest.Group
        for version in VERSIONS[8:]:
            asked = [form(group_id=group_id, topics=None) for group_id in ("h", "secret", "g", "unknown")]
            response = self.successResultOf(self.serving.ask(offset_fetch, OffsetFetchRequest(groups=asked), version))
            assert [(group.group_id, group.error_code, len(group.topics)) for group in response.groups] == [
                ("h", 0, 1),
                ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
                ("g", 0, 2),
                ("unknown", 0, 0),
            ], version

    def test_pending_offsets_are_unstable(self) -> None:
        """
        A client that requires stable offsets must retry while a transaction may commit some; others get the old ones.
        """
        self.groups.offsets("g").pending.put(
            7, TopicPartition("orders", 0), OffsetCommitValue(offset=9, metadata="", commit_timestamp=0)
        )
        for version in VERSIONS[7:]:
            unstable = (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
            for wanted in ({"orders": [0]}, None):
                told = self.fetch(version, wanted, require_stable=True)
                assert told[("orders", 0)] == unstable, version
            assert self.fetch(version, {"orders": [0]})[("orders", 0)] == (40, "note", 0)
            assert self.fetch(version, {"returns": [1]}, require_stable=True)[("returns", 1)] == (50, "note", 0)

    def test_a_recreated_topic_has_no_offsets(self) -> None:
        self.groups.stop()
        self.serving.broker.delete_topic(self.ids["orders"])
        self.ids["orders"] = self.successResultOf(self.serving.broker.create_topic(NewTopic("orders", 3))).id
        self.serving.parts.services.clear()
        for version in VERSIONS:
            assert self.fetch(version, {"orders": [0]}) == {("orders", 0): NOTHING}, version

    def test_the_group_fences_members(self) -> None:
        """
        From v9 on it sees the member's fields.
        """
        asked: list[Any] = []

        def check(*arguments: Any) -> None:
            asked.append(arguments)
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "no")

        self.patch(self.groups.find("g"), "check_fetch", check)
        for version in VERSIONS:
            more = {"member_id": "m", "member_epoch": 4} if version >= 9 else {}
            assert self.code(version, **more) == ErrorCode.STALE_MEMBER_EPOCH, version
        assert asked == [(None, -1)] * 9 + [("m", 4)] * 2

    def test_another_coordinator_is_an_error(self) -> None:
        self.groups.stop()
        for version in VERSIONS:
            assert self.code(version) == ErrorCode.COORDINATOR_NOT_AVAILABLE, version

    def test_permission_is_needed(self) -> None:
        """
        Without it on the group nothing is returned; topics fail one by one, or are left out of all.
        """
        self.serving.parts.authorizer = Denying(lambda _, resource, name: name == "orders")
        for version in VERSIONS:
            denied = (-1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            told = self.fetch(version, {"orders": [0], "returns": [1]})
            assert told == {("orders", 0): denied, ("returns", 1): (50, "note", 0)}, version
            if version >= 2:
                assert self.fetch(version, None) == {("returns", 1): (50, "note", 0)}, version
        authorizer = self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        for version in VERSIONS:
            assert self.code(version) == ErrorCode.GROUP_AUTHORIZATION_FAILED, version
        assert set(authorizer.asked) == {(Operation.DESCRIBE, Resource.GROUP, "g")}
