"""
OffsetDelete: a group forgets offsets of topics that none of its members reads (KIP-496).
"""

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.expiry import CONSUMERS
from kgateway.groups.group import Group
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.groups.shard import Held
from kgateway.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kgateway.partitions import topic_named
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = OffsetDeleteRequest.Topic
TopicAnswer = OffsetDeleteResponse.Topic
Answer = TopicAnswer.Partition


@api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    versions="0",
    needs=(Operation.DELETE.on(Resource.GROUP), Operation.READ.on(Resource.TOPIC)),
)
def offset_delete(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    context.demand(Operation.DELETE, Resource.GROUP, request.group_id)
    held = _held(request.group_id, context)
    wanted: list[Place] = []
    topics = [_in_topic(topic, held.group, wanted, context) for topic in request.topics]
    response = OffsetDeleteResponse(error_code=ErrorCode.NONE, throttle_time_ms=0, topics=topics)
    safe = held.offsets.forget(wanted)
    return safe.addCallback(lambda _: response) if safe else response


def _held(group_id: str, context: Context) -> Held:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    held = context.service(Groups).get(group_id)
    group = held.group
    if not group.is_empty and group.protocol_type != CONSUMERS:
        reason = f"what the members of group {group_id} read is not known, for they are {group.protocol_type}"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, reason)
    return held


def _in_topic(asked: TopicAsked, group: Group, wanted: list[Place], context: Context) -> TopicAnswer:
    name = asked.name
    try:
        context.demand(Operation.READ, Resource.TOPIC, name)
        topic = topic_named(context, name)
        if group.reads(name):
            raise KafkaError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, f"a member of group {group.group_id} reads {name}")
    except KafkaError as error:
        answers = [_refused(error, name, partition.partition_index, context) for partition in asked.partitions]
    else:
        answers = [_in_partition(topic, one.partition_index, wanted, context) for one in asked.partitions]
    return TopicAnswer(name=name, partitions=answers)


def _in_partition(topic: Topic, index: int, wanted: list[Place], context: Context) -> Answer:
    if not 0 <= index < len(topic.partitions):
        return _refused(topic.no_partition(index), topic.name, index, context)
    wanted.append(Place(topic.name, index))
    return Answer(partition_index=index, error_code=ErrorCode.NONE)


def _refused(error: KafkaError, name: str, index: int, context: Context) -> Answer:
    return Answer(partition_index=index, error_code=context.refuse(error, f"{name}-{index}"))
