"""
OffsetFetch.
"""

from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from handlers.offset_fetch import offset_fetch
from kgateway.cluster.view import NewTopic
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.permissions import Operation, Resource
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
        self.groups = self.serving.parts.service(Groups)
        self.commit("g", "orders", 0, 40)
        self.commit("g", "returns", 1, 50)

    def commit(self, group_id: str, topic: str, index: int, offset: int) -> None:
        value = OffsetCommitValue(
            offset=offset, leader_epoch=6, metadata="note", commit_timestamp=START_MS, topic_id=self.ids[topic]
        )
        self.groups.simple(group_id).offsets.commit([(Place(topic, index), value)])

    def begin(self, version: int, wanted: dict[str, list[int]] | None, **more: Any) -> Deferred[Any]:
        """
        Ask for partitions of one group, in the form that the version has for it.
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
        Offset, text and code of each partition.
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
        The code that a whole group has.
        """
        answer = self.begin(version, {"orders": [0]}, **more)
        if version < 8:
            return int(self.failureResultOf(answer, KafkaError).value.code)
        [group] = self.successResultOf(answer).groups
        assert group.topics == []
        return int(group.error_code)

    def test_versions(self) -> None:
        """
        All versions are served.
        """
        assert offset_fetch.versions == VERSIONS

    def test_offsets(self) -> None:
        """
        Each partition asked for has its offset and text, or -1 where nothing is committed.
        """
        for version in VERSIONS:
            told = self.fetch(version, {"orders": [0, 1], "returns": [1, 77]})
            assert told == {
                ("orders", 0): (40, "note", 0),
                ("orders", 1): NOTHING,
                ("returns", 1): (50, "note", 0),
                ("returns", 77): NOTHING,
            }, version

    def test_leader_epochs(self) -> None:
        """
        From v5 on the leader epoch is told, too.
        """
        for version in VERSIONS[5:]:
            response = self.successResultOf(self.begin(version, {"orders": [0, 1]}))
            [topic] = (response.groups[0] if version >= 8 else response).topics
            assert [one.committed_leader_epoch for one in topic.partitions] == [6, -1], version

    def test_all(self) -> None:
        """
        Null topics are all that the group has.
        """
        for version in VERSIONS[2:]:
            told = self.fetch(version, None)
            assert told == {("orders", 0): (40, "note", 0), ("returns", 1): (50, "note", 0)}, version
            assert self.fetch(version, None, group_id="unknown") == {}

    def test_all_and_topics_without_an_id(self) -> None:
        """
        Where topics go by their ids, one that has none any more is left out.
        """
        self.commit("h", "missing", 0, 7)
        for version in VERSIONS[2:]:
            told = {} if version >= 10 else {("missing", 0): (7, "note", 0)}
            assert self.fetch(version, None, group_id="h") == told, version

    def test_unknown_group(self) -> None:
        """
        A group that is not there has committed nothing; that is no error.
        """
        for version in VERSIONS:
            assert self.fetch(version, {"orders": [0]}, group_id="unknown") == {("orders", 0): NOTHING}, version
        assert [group.group_id for group in self.successResultOf(Deferred.fromCoroutine(self.groups.all()))] == ["g"]

    def test_unknown_topics(self) -> None:
        """
        A name that no topic has is no error, an id is.
        """
        for version in VERSIONS:
            code = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else 0
            assert self.fetch(version, {"missing": [0]}) == {("missing", 0): (-1, "", code)}, version

    def test_several_groups(self) -> None:
        """
        Each group has an outcome of its own.
        """
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

    def test_unstable(self) -> None:
        """
        Where a transaction is about to commit, who wants stable offsets has to come again; others get what there is.
        """
        self.groups.offsets("g").pending.put(
            7, Place("orders", 0), OffsetCommitValue(offset=9, metadata="", commit_timestamp=0)
        )
        for version in VERSIONS[7:]:
            unstable = (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
            for wanted in ({"orders": [0]}, None):
                told = self.fetch(version, wanted, require_stable=True)
                assert told[("orders", 0)] == unstable, version
            assert self.fetch(version, {"orders": [0]})[("orders", 0)] == (40, "note", 0)
            assert self.fetch(version, {"returns": [1]}, require_stable=True)[("returns", 1)] == (50, "note", 0)

    def test_topic_that_was_made_again(self) -> None:
        """
        The offsets of an earlier topic of the name are not those of this one.
        """
        self.groups.stop()
        self.serving.broker.delete_topic(self.ids["orders"])
        self.ids["orders"] = self.successResultOf(self.serving.broker.create_topic(NewTopic("orders", 3))).id
        self.serving.parts.services.clear()
        for version in VERSIONS:
            assert self.fetch(version, {"orders": [0]}) == {("orders", 0): NOTHING}, version

    def test_members_are_fenced(self) -> None:
        """
        The group is asked whether a member may fetch, from v9 on by what it says of itself.
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

    def test_not_coordinator(self) -> None:
        """
        Where groups are not here, that is the outcome.
        """
        self.groups.stop()
        for version in VERSIONS:
            assert self.code(version) == ErrorCode.COORDINATOR_NOT_AVAILABLE, version

    def test_denied(self) -> None:
        """
        Who may not describe the group learns nothing; topics that may not be described fail alone, or are left out
        where all were asked for.
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
