"""
Transactional batches whose coordinator is another gateway.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.cluster.view import Node
from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.interfaces import IBroker
from kgateway.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    TopicResult,
)
from kgateway.security.authorizer import AllowAll
from kgateway.security.permissions import Resource
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.enrolment import Dialect, enrol
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.transactions.simulated_broker import THERE, SimulatedBroker
from tests.transactions.transaction_world import T0, T1

ME = ProducerIdAndEpoch(7, 4)
LATER = ErrorCode.NOT_ENOUGH_REPLICAS
Answer = AddPartitionsToTxnResponse.ResultsByTransaction


class RemoteCoordinatorBroker(SimulatedBroker):
    """
    A broker whose other node coordinates everything.
    """

    def coordinator(self, resource: Resource, key: str) -> Any:
        assert resource is Resource.TRANSACTIONAL_ID
        return Node(THERE)

    def coordinators(self, resource: Resource) -> list[Any]:
        return []


class World:
    """
    A gateway with partitions, but without transactions of its own.
    """

    def __init__(self) -> None:
        self.broker = RemoteCoordinatorBroker()
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), Clock(), lambda: START_MS)
        self.transactions = parts.service(TransactionCoordinator)

    def join(self, *, adds: bool = True) -> Deferred[None]:
        return Deferred.fromCoroutine(enrol(self.transactions, "a", ME, {T0, T1}, Dialect(adds, True, LATER)))

    def answer(self, codes: dict[int, ErrorCode], error: ErrorCode = ErrorCode.NONE) -> None:
        """
        Answer for the other node, with these codes for partitions of `t`.
        """
        told = [PartitionResult(partition_index=index, partition_error_code=code) for index, code in codes.items()]
        found = Answer(transactional_id="a", topic_results=[TopicResult(name="t", results_by_partition=told)])
        answer = AddPartitionsToTxnResponse(throttle_time_ms=0, error_code=error, results_by_transaction=[found])
        self.broker.peers.answers.popleft().callback(answer)


@pytest.mark.parametrize("adds", [True, False])
def test_the_coordinator_is_asked(adds: bool) -> None:
    """
    It is asked as Kafka's brokers ask each other, once for all partitions.
    """
    world = World()
    joined = world.join(adds=adds)
    ((node, request, version),) = world.broker.peers.asked
    assert (node.id, version) == (THERE, 5)
    assert isinstance(request, AddPartitionsToTxnRequest)
    (asked,) = request.transactions
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("a", *ME)
    assert asked.verify_only is not adds
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [("t", [0, 1])]
    assert not joined.called
    world.answer({0: ErrorCode.NONE, 1: ErrorCode.NONE})
    assert result(joined) is None


SAID = [
    ({0: ErrorCode.NONE, 1: ErrorCode.TRANSACTION_ABORTABLE}, ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE),
    ({0: ErrorCode.PRODUCER_FENCED, 1: ErrorCode.NONE}, ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH),
    ({0: ErrorCode.NONE}, ErrorCode.NONE, LATER),
    ({0: ErrorCode.NOT_COORDINATOR, 1: ErrorCode.NOT_COORDINATOR}, ErrorCode.NONE, LATER),
    ({}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
]


@pytest.mark.parametrize(("codes", "error", "told"), SAID)
def test_answers_of_the_coordinator(codes: dict[int, ErrorCode], error: ErrorCode, told: ErrorCode) -> None:
    """
    A refusal is translated for the client; a partition missing in the answer is asked for again later.
    """
    world = World()
    joined = world.join()
    world.answer(codes, error)
    assert refusal(lambda: joined).code is told


@pytest.mark.parametrize(("adds", "told"), [(True, ErrorCode.CONCURRENT_TRANSACTIONS), (False, LATER)])
def test_the_previous_transaction_has_not_ended(adds: bool, told: ErrorCode) -> None:
    """
    Clients whose partitions are added for them retry; old clients do not know this code here, and get another.
    """
    world = World()
    joined = world.join(adds=adds)
    world.answer(dict.fromkeys((0, 1), ErrorCode.CONCURRENT_TRANSACTIONS))
    assert refusal(lambda: joined).code is told


def test_clients_retry_while_the_coordinator_is_away() -> None:
    world = World()
    joined = world.join()
    world.broker.peers.answers.popleft().errback(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "nothing listens"))
    assert refusal(lambda: joined).code is LATER
