"""
OffsetForLeaderEpoch.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from handlers.offset_for_leader_epoch import offset_for_leader_epoch
from kgateway.cluster.partition import EpochEnd
from kgateway.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetching.rigged import RiggedPartition, batch, rigged
from tests.serving import Denying

VERSIONS = range(2, 5)
DENIALS = {(Operation.CLUSTER_ACTION, Resource.CLUSTER), (Operation.DESCRIBE, Resource.TOPIC)}

Answer = OffsetForLeaderEpochResponse.Topic.Partition


class Epochs(RiggedPartition):
    """
    Of the epochs before 6, 3 ends last; later ones are not known.
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

    def test_versions(self) -> None:
        """
        The versions of Kafka 4.3 are served.
        """
        self.assertEqual(VERSIONS, offset_for_leader_epoch.versions)

    def test_end(self) -> None:
        """
        The end of the epoch, or of the one before it, is told with the epoch it is the end of.
        """
        for version in VERSIONS:
            [answer] = self.ask(version)
            self.assertEqual((ErrorCode.NONE, 0, 3, 2), self.fields(answer), version)
            [current] = self.ask(version, 1, epoch=0)
            self.assertEqual((ErrorCode.NONE, 1, 0, 3), self.fields(current), version)

    def test_unknown_epoch(self) -> None:
        """
        Of an epoch that the log knows nothing of, nothing is told, which is no error.
        """
        for version in VERSIONS:
            [answer] = self.ask(version, epoch=6)
            self.assertEqual((ErrorCode.NONE, 0, -1, -1), self.fields(answer), version)

    def test_unknown_partition(self) -> None:
        """
        A topic or partition that is not there is refused; a partition beside it is answered.
        """
        for version in VERSIONS:
            self.assertEqual([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], self.codes(version, name="missing"), version)
            expected = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
            self.assertEqual(expected, self.codes(version, 2, 0), version)

    def test_leader_epochs(self) -> None:
        """
        A client whose leader epoch is not ours is refused.
        """
        self.partition.leader_epoch = 5
        expected = {4: ErrorCode.FENCED_LEADER_EPOCH, 5: ErrorCode.NONE, 6: ErrorCode.UNKNOWN_LEADER_EPOCH}
        for version in VERSIONS:
            for epoch, code in expected.items():
                self.assertEqual([code], self.codes(version, 1, current_leader_epoch=epoch), version)

    def test_denied(self) -> None:
        """
        Who may neither act on the cluster nor describe the topic is refused, and not told whether it is there.
        """
        self.deny(*DENIALS)
        for version in VERSIONS:
            for name in ("orders", "missing"):
                self.assertEqual([ErrorCode.TOPIC_AUTHORIZATION_FAILED], self.codes(version, name=name), version)

    def test_one_permission_is_enough(self) -> None:
        """
        Who may do one of the two is answered.
        """
        for denied in DENIALS:
            self.deny(denied)
            self.assertEqual([ErrorCode.NONE], self.codes(4), denied)

    def test_permission_is_asked_once(self) -> None:
        """
        For the cluster it is asked once, and then once for each topic.
        """
        authorizer = self.deny((Operation.CLUSTER_ACTION, Resource.CLUSTER))
        self.ask(4, 0, 1)
        self.assertEqual([Resource.CLUSTER, Resource.TOPIC], [resource for _, resource, _ in authorizer.asked])

    def test_failures(self) -> None:
        """
        What fails in one partition leaves the other; it is logged where it is unforeseen.
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
