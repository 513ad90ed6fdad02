"""
DescribeTransactions: the state of transactional ids (KIP-664).
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kgateway.topic_lookup import as_kafka_error
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.records import by_topic
from kgateway.wire.errors import ErrorCode

Answer = DescribeTransactionsResponse.TransactionState

_UNKNOWN = -1


@api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    versions="0",
    needs=(Operation.DESCRIBE.on(Resource.TRANSACTIONAL_ID), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def describe_transactions(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    answers = [_described(transactional_id, context) for transactional_id in request.transactional_ids]
    return DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=answers)


def _described(transactional_id: str, context: Context) -> Answer:
    try:
        return _answer(transactional_id, context)
    except Exception as error:
        code = context.refuse(as_kafka_error(error, transactional_id), transactional_id)
        return Answer(
            error_code=code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=_UNKNOWN,
            transaction_start_time_ms=_UNKNOWN,
            producer_id=_UNKNOWN,
            producer_epoch=_UNKNOWN,
            topics=[],
        )


def _answer(transactional_id: str, context: Context) -> Answer:
    context.demand(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)
    found = context.service(TransactionCoordinator).describe(transactional_id)
    shown = [
        partition
        for partition in found.partitions
        if context.allowed(Operation.DESCRIBE, Resource.TOPIC, partition.topic)
    ]
    return Answer(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[Answer.Topic(topic=topic.topic, partitions=topic.partition_ids) for topic in by_topic(shown)],
    )
