"""
DescribeProducers: the idempotent producers of a partition, the last sequence number of each, and the start of its
transaction if one is open (KIP-664).
"""

from collections.abc import Iterator, Mapping

from kgateway.api import Context, Operation, Resource, api
from kgateway.broker.partition.producer_state import Producer, ProducerTable
from kgateway.cluster.names import no_such_topic
from kgateway.cluster.partition import NO_OFFSET
from kgateway.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = DescribeProducersResponse.Topic.Partition

_NO_SEQUENCE = _NO_TIMESTAMP = -1


@api(DescribeProducersRequest, DescribeProducersResponse, versions="0", needs=Operation.READ.on(Resource.TOPIC))
def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time_ms=0,
        topics=[
            DescribeProducersResponse.Topic(
                name=topic.name, partitions=[_answer(topic.name, index, context) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ],
    )


def _answer(name: str, index: int, context: Context) -> Answer:
    try:
        table = _producers(name, index, context)
    except KafkaError as error:
        code = context.refuse(error, f"{name}-{index}")
        return Answer(partition_index=index, error_code=code, error_message=error.message, active_producers=[])
    return Answer(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[_active(*known, table.transactions.open) for known in _remembered(table, context.now_ms)],
    )


def _producers(name: str, index: int, context: Context) -> ProducerTable:
    context.demand(Operation.READ, Resource.TOPIC, name)
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise no_such_topic(name)
    return context.broker.partition(topic.id, index).producers()


def _remembered(table: ProducerTable, now_ms: int) -> Iterator[tuple[int, Producer]]:
    """
    The producers that have not expired. Expired ones are dropped from the table at the next append.
    """
    for producer_id, producer in table.producers.items():
        if producer_id in table.transactions.open or producer.seen_ms > now_ms - table.expiry_ms:
            yield producer_id, producer


def _active(producer_id: int, producer: Producer, began: Mapping[int, int]) -> Answer.ActiveProducer:
    last = producer.window[-1] if producer.window else None
    return Answer.ActiveProducer(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_sequence=last.last_sequence if last else _NO_SEQUENCE,
        last_timestamp=last.timestamp_ms if last else _NO_TIMESTAMP,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=began.get(producer_id, NO_OFFSET),
    )
