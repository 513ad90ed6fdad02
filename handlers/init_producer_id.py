"""
InitProducerId: gives a producer the id and epoch it writes with.

 - v3: producer_id and producer_epoch, with which a producer continues after an error (KIP-360)
 - v4: PRODUCER_FENCED
 - v6: for two-phase commit; unstable in Kafka 4.3 (KIP-939), and not served

A producer without a transactional id always gets a new id: no other producer has its old one, so there is nothing to
fence. With a transactional id the coordinator decides.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError

_NONE = -1
_FIRST_EPOCH = 0


@api(
    InitProducerIdRequest,
    InitProducerIdResponse,
    versions="0-5",
    needs=(
        Operation.WRITE.on(Resource.TRANSACTIONAL_ID),
        Operation.IDEMPOTENT_WRITE.on(Resource.CLUSTER),
        Operation.WRITE.on(Resource.TOPIC),
    ),
)
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    try:
        _check_permission(request.transactional_id, context)
        _check(request)
        producer = await _producer(request, context)
    except KafkaError as error:
        code = context.refuse(error, request.transactional_id or "")
        return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_epoch=_NONE)
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer.producer_id, producer_epoch=producer.epoch
    )


def _check_permission(transactional_id: str | None, context: Context) -> None:
    """
    Without a transactional id, a client that may write to any topic may be idempotent (KIP-679).
    """
    if transactional_id is not None:
        context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
        return
    topics = context.broker.view().topics
    if not context.allowed(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER) and not any(
        context.allowed(Operation.WRITE, Resource.TOPIC, name) for name in topics
    ):
        reason = (
            f"{context.session.principal} may neither IDEMPOTENT_WRITE CLUSTER nor WRITE any of {len(topics)} topics"
        )
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        reason = (
            f"producer_id is {request.producer_id} and producer_epoch {request.producer_epoch}: set both or neither"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")


async def _producer(request: InitProducerIdRequest, context: Context) -> ProducerIdAndEpoch:
    transactional_id = request.transactional_id
    if transactional_id is None:
        return ProducerIdAndEpoch(await context.broker.new_producer_id(), _FIRST_EPOCH)
    known = None if request.producer_id == _NONE else ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    transactions, timeout_ms = context.service(TransactionCoordinator), request.transaction_timeout_ms
    return await transactions.init_producer(transactional_id, timeout_ms, known, context.version)
