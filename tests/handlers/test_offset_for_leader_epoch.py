"""
OffsetForLeaderEpoch.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import EpochEnd
from kgateway.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from kgateway.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetch.rigged_broker import RiggedPartition, batch, rigged
from tests.serving import Denying

VERSIONS = range(2, 5)
DENIALS = {(Operation.CLUSTER_ACTION, Resource.CLUSTER), (Operation.DESCRIBE, Resource.TOPIC)}

Answer = OffsetForLeaderEpochResponse.Topic.Partition


class Epochs(RiggedPartition):
    """
    Of the epochs before 6, 3 ends last; later ones are unknown.
    """

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        return EpochEnd(3, 2) if leader_epoch < 6 else None


class OffsetForLeaderEpochTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = rigged()
        [first, self.partition] = self.broker.make(partitions=2)
        self.broker.rigged[first.topic.id, 0] = Epochs(first.topic, 0)
        self.partition.put(batch(count=3))

    def ask(self, version: int, *partitions: int, name: str = "orders", epoch: int = 4, **more: Any) -> list[Answer]:
        asked = [
            OffsetForLeaderEpochRequest.Topic.Partition(partition=index, leader_epoch=epoch, **more)
            for index in partitions or (0,)
        ]
        topics = [OffsetForLeaderEpochRequest.Topic(topic=name, partitions=asked)]
        request = OffsetForLeaderEpochRequest(topics=topics)
        [topic] = self.successResultOf(self.serving.ask(offset_for_leader_epoch, request, version)).topics
        self.assertEqual(name, topic.topic)
        answers: list[Answer] = topic.partitions
        return answers

    def codes(self, version: int, *partitions: int, **more: Any) -> list[int]:
        answers = self.ask(version, *partitions, **more)
        refused = [answer for answer in answers if answer.error_code]
        self.assertEqual({(-1, -1)} if refused else set(), {(one.leader_epoch, one.end_offset) for one in refused})
        return [answer.error_code for answer in answers]

    def deny(self, *denied: tuple[Operation, Resource]) -> Denying:
        authorizer = Denying(lambda operation, resource, _: (operation, resource) in denied)
        self.serving.parts.authorizer = authorizer
        return authorizer

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        self.assertEqual(VERSIONS, offset_for_leader_epoch.versions)

    def test_epoch_ends_are_returned(self) -> None:
        """
        The end may be that of an earlier epoch, which is returned with it.
        """
        for version in VERSIONS:
            [answer] = self.ask(version)
            self.assertEqual((ErrorCode.NONE, 0, 3, 2), self.fields(answer), version)
            [current] = self.ask(version, 1, epoch=0)
            self.assertEqual((ErrorCode.NONE, 1, 0, 3), self.fields(current), version)

    def test_unknown_epochs_have_no_end(self) -> None:
        """
        This is no error.
        """
        for version in VERSIONS:
            [answer] = self.ask(version, epoch=6)
            self.assertEqual((ErrorCode.NONE, 0, -1, -1), self.fields(answer), version)

    def test_unknown_partitions_are_refused(self) -> None:
        """
        Other partitions are answered.
        """
        for version in VERSIONS:
            self.assertEqual([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], self.codes(version, name="missing"), version)
            expected = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
            self.assertEqual(expected, self.codes(version, 2, 0), version)

    def test_leader_epochs_are_checked(self) -> None:
        self.partition.leader_epoch = 5
        expected = {4: ErrorCode.FENCED_LEADER_EPOCH, 5: ErrorCode.NONE, 6: ErrorCode.UNKNOWN_LEADER_EPOCH}
        for version in VERSIONS:
            for epoch, code in expected.items():
                self.assertEqual([code], self.codes(version, 1, current_leader_epoch=epoch), version)

    def test_permission_is_needed(self) -> None:
        """
        A client that may neither act on the cluster nor describe the topic does not learn whether it exists.
        """
        self.deny(*DENIALS)
        for version in VERSIONS:
            for name in ("orders", "missing"):
                self.assertEqual([ErrorCode.TOPIC_AUTHORIZATION_FAILED], self.codes(version, name=name), version)

    def test_one_of_two_permissions_is_enough(self) -> None:
        for denied in DENIALS:
            self.deny(denied)
            self.assertEqual([ErrorCode.NONE], self.codes(4), denied)

    def test_permission_is_checked_once(self) -> None:
        """
        It is checked once for the cluster, and then once for each topic.
        """
        authorizer = self.deny((Operation.CLUSTER_ACTION, Resource.CLUSTER))
        self.ask(4, 0, 1)
        self.assertEqual([Resource.CLUSTER, Resource.TOPIC], [resource for _, resource, _ in authorizer.asked])

    def test_failures_do_not_affect_other_partitions(self) -> None:
        """
        Unexpected ones are logged.
        """
        for error, code in (
            (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            self.broker.failing[0] = error
            self.assertEqual([code, ErrorCode.NONE], self.codes(4, 0, 1))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def fields(self, answer: Answer) -> tuple[int, int, int, int]:
        return answer.error_code, answer.partition, answer.leader_epoch, answer.end_offset
