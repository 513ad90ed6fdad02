"""
AlterPartitionReassignments and ListPartitionReassignments.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.handlers.alter_partition_reassignments import alter_partition_reassignments
from kgateway.handlers.list_partition_reassignments import list_partition_reassignments
from kgateway.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kgateway.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import NEAR, OWN, serving_among

Topic = AlterPartitionReassignmentsRequest.Topic
Told = tuple[int, str | None]
MANUAL = "The manual partition assignment includes"


class ReassignmentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = serving_among(NEAR)
        self.successResultOf(self.broker.create_topic(NewTopic("orders", 2)))

    def ask(self, replicas: list[int] | None, name: str = "orders", index: int = 0, version: int = 1) -> Told:
        partition = Topic.Partition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(topics=[Topic(name=name, partitions=[partition])])
        answer = self.successResultOf(self.serving.ask(alter_partition_reassignments, request, version))
        [topic] = answer.responses
        [told] = topic.partitions
        assert (answer.error_code, topic.name, told.partition_index) == (0, name, index)
        assert [refusal.error.code for refusal in self.serving.context.refusals or []] == [told.error_code][
            : bool(told.error_code)
        ]
        return told.error_code, told.error_message

    def test_the_current_assignment_is_accepted(self) -> None:
        """
        The order of the replicas does not matter.
        """
        self.broker.owners["orders"] = (OWN, NEAR.id)
        for version in alter_partition_reassignments.versions:
            assert self.ask([OWN, NEAR.id], version=version) == (0, None), version
            assert self.ask([NEAR.id, OWN], version=version) == (0, None), version

    def test_moves_are_refused(self) -> None:
        """
        Gateways move partitions, clients do not.
        """
        for replicas in ([NEAR.id], [OWN, NEAR.id]):
            code, told = self.ask(replicas)
            assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert told == "orders-0 is on 1: gateways distribute partitions among themselves"

    def test_impossible_replicas_are_refused(self) -> None:
        """
        They are unknown brokers, duplicates, or none.
        """
        for replicas, says in (
            ([9], "broker 9, but no such broker is registered."),
            ([OWN, -1], "broker -1, but no such broker is registered."),
            ([9, OWN, OWN], "the broker 1 more than once."),
            ([], "an empty replica list."),
        ):
            assert self.ask(replicas) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{MANUAL} {says}")

    def test_there_is_no_move_to_cancel(self) -> None:
        assert self.ask(None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    def test_unknown_partitions_are_refused(self) -> None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for replicas in ([OWN], [9], None):
            assert self.ask(replicas, index=2) == (code, "Unable to find partition orders:2.")
            assert self.ask(replicas, index=-1) == (code, "Unable to find partition orders:-1.")
            assert self.ask(replicas, "nowhere") == (code, "Unable to find a topic named nowhere.")

    def test_no_move_is_listed(self) -> None:
        """
        It does not matter which partitions are named.
        """
        named = ListPartitionReassignmentsRequest.Topic(name="orders", partition_indexes=[0, 7])
        for topics in (None, [], [named]):
            request = ListPartitionReassignmentsRequest(topics=topics)
            answer = self.successResultOf(self.serving.ask(list_partition_reassignments, request, 0))
            assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])
