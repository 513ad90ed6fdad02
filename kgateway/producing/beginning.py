"""
Transactions that begin with batches of a Produce request: their coordinator is asked first (`transactions/joining.py`).
"""

from collections.abc import Mapping, Set
from contextlib import suppress
from typing import cast

from twisted.internet.defer import Deferred

from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.interfaces import IPartition
from kgateway.messages.produce import ProduceRequest
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch
from kgateway.transactions.joining import Dialect, beginner, join
from kgateway.transactions.state import Identity, Place
from kgateway.transactions.transactions import Transactions
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_ABORTABLE_SINCE = 11
_ADDS_SINCE = 12


def check_named(request: ProduceRequest) -> None:
    """
    Refuse a batch of a transaction in a request that does not say which.
    """
    if request.transactional_id is None:
        reason = "the batch is transactional, and the request names no transactional id"
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)


def joining(
    topic: Topic, data: ProduceRequest.TopicData, request: ProduceRequest, context: Context
) -> Deferred[None] | None:
    """
    Ask the coordinator of what begins in a topic. `None` where it has agreed by then, else what fires or fails as it
    does.
    """
    beginning: dict[Identity, set[Place]] = {}
    for partition in data.partition_data:
        with suppress(KafkaError):  # which is told where it is written
            owned = context.broker.partition(topic.id, partition.index)
            who = beginner(cast("Buffer | None", partition.records), owned)
            if who is not None:
                beginning.setdefault(who, set()).add(Place(topic.name, partition.index))
    if not beginning:
        return None
    agreed: list[None] = []
    asked = Deferred.fromCoroutine(_join_all(beginning, request, context)).addCallback(agreed.append)
    return None if agreed else asked


async def _join_all(beginning: Mapping[Identity, Set[Place]], request: ProduceRequest, context: Context) -> None:
    for who, places in beginning.items():
        await _join(who, places, request, context)


async def allowed(batch: Batch, place: Place, partition: IPartition, request: ProduceRequest, context: Context) -> None:
    """
    Ask the coordinator of a batch that is made; a KafkaError where it is no part of a transaction and should be.
    """
    header = batch.header
    if not header.attributes & TRANSACTIONAL_BIT:
        return
    check_named(request)
    try:
        await _join(Identity(header.producer_id, header.producer_epoch), {place}, request, context)
    except KafkaError as error:
        if error.code.retriable:
            partition.producers().send_back(header)
        raise


async def _join(who: Identity, places: Set[Place], request: ProduceRequest, context: Context) -> None:
    assert request.transactional_id is not None
    version = context.version
    dialect = Dialect(version >= _ADDS_SINCE, version >= _ABORTABLE_SINCE, ErrorCode.NOT_ENOUGH_REPLICAS)
    await join(context.service(Transactions), request.transactional_id, who, places, dialect)
