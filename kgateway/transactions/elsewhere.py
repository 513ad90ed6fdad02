"""
Asks the coordinator of a transaction that is another gateway, as Kafka's brokers ask each other (KIP-890).
"""

from collections.abc import Mapping, Set

from kgateway.cluster.view import Node
from kgateway.interfaces import IPeers
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from kgateway.transactions.coding import by_topic
from kgateway.transactions.state import Identity, Place
from kgateway.wire.errors import ErrorCode

_VERSION = AddPartitionsToTxnRequest.__spec__.versions[-1]


async def ask(
    peers: IPeers, node: Node, transactional_id: str, who: Identity, places: Set[Place], *, adds: bool
) -> Mapping[Place, ErrorCode]:
    """
    What the coordinator says of each partition, which it adds to the transaction or finds there; a KafkaError where it
    does not answer.
    """
    asked = AddPartitionsToTxnRequest.Transaction(
        transactional_id=transactional_id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        verify_only=not adds,
        topics=[Topic(name=one.topic, partitions=one.partition_ids) for one in by_topic(places)],
    )
    answer = await peers.ask(node, AddPartitionsToTxnRequest(transactions=[asked]), _VERSION)
    assert isinstance(answer, AddPartitionsToTxnResponse)
    told = {
        Place(topic.name, one.partition_index): ErrorCode(one.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for one in topic.results_by_partition
    }
    unsaid = ErrorCode(answer.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return {place: told.get(place, unsaid) for place in places}
