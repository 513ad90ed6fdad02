"""
DeleteRecords: lets the oldest records of partitions go, each for itself.

 - v2: flexible

A partition that is named more than once is asked for as it was named last, and answered once, as in Kafka. With the
timeout only the answer comes; the records go all the same.
"""

from twisted.internet.defer import Deferred, gatherResults

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.deadline import Deadline
from kgateway.interfaces import IPartition
from kgateway.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgateway.partitions import foreseen, topic_named
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = DeleteRecordsResponse.Topic.Partition
HIGH_WATERMARK = -1
_UNKNOWN = -1


@api(
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    versions="0-2",
    needs=Operation.DELETE.on(Resource.TOPIC),
)
async def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update({one.partition_index: one.offset for one in topic.partitions})
    deadline = Deadline(context.clock, request.timeout_ms)
    started = {  # all, before the first is waited for
        name: gatherResults(
            [Deferred.fromCoroutine(_answer(name, *place, context, deadline)) for place in offsets.items()]
        )
        for name, offsets in asked.items()
        if offsets
    }
    topics = [DeleteRecordsResponse.Topic(name=name, partitions=await answers) for name, answers in started.items()]
    return DeleteRecordsResponse(throttle_time_ms=0, topics=topics)


async def _answer(name: str, index: int, offset: int, context: Context, deadline: Deadline) -> Answer:
    try:
        partition = _partition(name, index, context)
        wanted = partition.high_watermark if offset == HIGH_WATERMARK else offset
        low = await deadline.wait(partition.delete_before(wanted))
    except Exception as error:
        subject = f"{name}-{index}"
        code = context.refuse(foreseen(error, subject), subject)
        return Answer(partition_index=index, low_watermark=_UNKNOWN, error_code=code)
    return Answer(partition_index=index, low_watermark=low, error_code=ErrorCode.NONE)


def _partition(name: str, index: int, context: Context) -> IPartition:
    """
    The partition, if its records may be deleted.
    """
    context.demand(Operation.DELETE, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if topic.internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {name} cannot be deleted")
    partition = context.broker.partition(topic.id, index)
    if not topic.config.deletes:
        reason = (
            f"no records of {name} are deleted, for its cleanup.policy is {','.join(topic.config.cleanup_policy)!r}"
        )
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)
    return partition
