"""
DeleteRecords: deletes the oldest records of partitions, each on its own.

 - v2: flexible

If a partition is named more than once, the last offset counts, and there is one answer, as in Kafka. After the timeout
the client is answered; the records are deleted all the same.
"""

from twisted.internet.defer import Deferred, gatherResults

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.deadline import Deadline
from kgateway.interfaces import IPartition
from kgateway.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgateway.topic_lookup import as_kafka_error, topic_named
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = DeleteRecordsResponse.Topic.Partition
HIGH_WATERMARK = -1
_UNKNOWN = -1


@api(DeleteRecordsRequest, DeleteRecordsResponse, versions="0-2", needs=Operation.DELETE.on(Resource.TOPIC))
async def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(
            {partition.partition_index: partition.offset for partition in topic.partitions}
        )
    deadline = Deadline(context.clock, request.timeout_ms)
    started = {  # all are started before the first is waited for
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
        code = context.refuse(as_kafka_error(error, subject), subject)
        return Answer(partition_index=index, low_watermark=_UNKNOWN, error_code=code)
    return Answer(partition_index=index, low_watermark=low, error_code=ErrorCode.NONE)


def _partition(name: str, index: int, context: Context) -> IPartition:
    context.demand(Operation.DELETE, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if topic.internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {name} cannot be deleted")
    partition = context.broker.partition(topic.id, index)
    if not topic.config.deletes:
        reason = f"no records of {name} are deleted: its cleanup.policy is {','.join(topic.config.cleanup_policy)!r}"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)
    return partition
