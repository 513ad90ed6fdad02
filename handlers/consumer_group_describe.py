"""
ConsumerGroupDescribe: the state and the members of groups whose members speak the consumer protocol (KIP-848).

 - v1: member_type (KIP-1099)
"""

from collections.abc import Iterator

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.consumer.describing import Described
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.groups import Groups
from kgateway.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kgateway.partitions import foreseen
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    versions="0-1",
    needs=(Operation.DESCRIBE.on(Resource.GROUP), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def consumer_group_describe(request: ConsumerGroupDescribeRequest, context: Context) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    groups = [_describe(group_id, with_operations, context) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=groups)


def _describe(group_id: str, with_operations: bool, context: Context) -> Described:
    try:
        context.demand(Operation.DESCRIBE, Resource.GROUP, group_id)
        described = _group(group_id, context).describe()
        _demand_topics(described, context)
    except Exception as error:
        return _refused(foreseen(error, group_id), group_id, context)
    if with_operations:
        described.authorized_operations = context.permitted(Resource.GROUP, group_id)
    return described


def _group(group_id: str, context: Context) -> ConsumerGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group = context.service(Groups).find(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the members of {group_id} do not speak the consumer protocol")


def _demand_topics(described: Described, context: Context) -> None:
    """
    What the members read is shown to those who may know all of it.
    """
    for name in sorted(set(_topics(described))):
        context.demand(Operation.DESCRIBE, Resource.TOPIC, name)


def _topics(described: Described) -> Iterator[str]:
    for member in described.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (part.topic_name for part in assignment.topic_partitions)


def _refused(error: KafkaError, group_id: str, context: Context) -> Described:
    return Described(
        error_code=context.refuse(error, group_id),
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
