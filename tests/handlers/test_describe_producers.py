"""
DescribeProducers.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.handlers.describe_producers import describe_producers
from kgateway.interfaces import IPartition
from kgateway.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgateway.records.batch import Batch
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import START_MS, batch
from tests.broker.transaction_model import COORDINATOR_EPOCH, in_transaction, marked
from tests.serving import Denying, Serving

Topic = DescribeProducersRequest.Topic
Answer = DescribeProducersResponse.Topic.Partition


class DescribeProducersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serve(Serving())

    def serve(self, serving: Serving) -> None:
        self.serving = serving
        self.topic = self.successResultOf(serving.broker.create_topic(NewTopic("orders", 2)))

    def append(self, made: Batch, origin: Origin = Origin.CLIENT) -> None:
        partition: IPartition = self.serving.broker.partition(self.topic.id, 0)
        partition.append(made, origin)

    def ask(self, *asked: tuple[str, list[int]]) -> list[tuple[str, Answer]]:
        request = DescribeProducersRequest(topics=[Topic(name=name, partition_indexes=found) for name, found in asked])
        answer = self.successResultOf(self.serving.ask(describe_producers, request, 0))
        return [(topic.name, partition) for topic in answer.topics for partition in topic.partitions]

    def producers(self, index: int = 0) -> list[tuple[int, int, int, int]]:
        [(_, partition)] = self.ask(("orders", [index]))
        assert (partition.error_code, partition.error_message, partition.partition_index) == (0, None, index)
        for active in partition.active_producers:
            assert (active.coordinator_epoch, active.current_txn_start_offset) == (-1, -1)
        return [
            (active.producer_id, active.producer_epoch, active.last_sequence, active.last_timestamp)
            for active in partition.active_producers
        ]

    def test_idempotent_producers_are_described(self) -> None:
        """
        They have their epoch, last sequence number and last time; producers without an id are left out.
        """
        self.append(batch(3))
        self.append(batch(3, producer_id=7, producer_epoch=2, base_sequence=0))
        self.append(batch(2, producer_id=7, producer_epoch=2, base_sequence=3))
        self.append(batch(1, producer_id=9, producer_epoch=0, base_sequence=5))
        assert self.producers() == [(7, 2, 4, START_MS), (9, 0, 5, START_MS)]
        assert self.producers(1) == []

    def test_a_producer_with_markers_only_has_no_sequence(self) -> None:
        self.append(batch(1, producer_id=7, producer_epoch=2), Origin.COORDINATOR)
        assert self.producers() == [(7, 2, -1, -1)]

    def test_expired_producers_are_left_out(self) -> None:
        """
        This needs no later write.
        """
        self.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=0))
        expiry_s = self.serving.broker.partition(self.topic.id, 0).producers().expiry_ms / 1000
        self.serving.clock.advance(expiry_s - 1)
        self.append(batch(1, producer_id=8, producer_epoch=0, base_sequence=0))
        assert [found[0] for found in self.producers()] == [7, 8]
        self.serving.clock.advance(1)
        assert [found[0] for found in self.producers()] == [8]

    def test_transactions_are_described(self) -> None:
        """
        They have their first offset, and the epoch of the coordinator that ended the previous one; their producers do
        not expire.
        """
        for made in (
            in_transaction(9, b"a"),
            marked(9, commits=True),
            in_transaction(7, b"a"),
            in_transaction(9, b"b", sequence=1),
        ):
            self.append(made, Origin.COORDINATOR)
        self.serving.clock.advance(EXPIRY_MS / 1000)
        [(_, partition)] = self.ask(("orders", [0]))
        told = [
            (one.producer_id, one.coordinator_epoch, one.current_txn_start_offset) for one in partition.active_producers
        ]
        assert told == [(7, -1, 2), (9, COORDINATOR_EPOCH, 3)]

    def test_unknown_partitions_do_not_hinder_others(self) -> None:
        found = self.ask(("orders", [7, 0, -1]), ("x", [0]), ("a b", [0]))
        told = [(name, one.partition_index, one.error_code) for name, one in found]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told == [
            ("orders", 7, unknown),
            ("orders", 0, 0),
            ("orders", -1, unknown),
            ("x", 0, unknown),
            ("a b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]

    def test_permission_is_needed(self) -> None:
        """
        A client that may not read a topic does not learn whether it exists.
        """
        need = (Operation.READ, Resource.TOPIC)
        self.serve(Serving(Denying(lambda operation, resource, _: (operation, resource) == need)))
        for _, partition in self.ask(("orders", [0]), ("x", [0])):
            assert (partition.error_code, partition.active_producers) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
