"""
AlterPartitionReassignments: moves partitions to other brokers, or cancels a move. Gateways distribute partitions among
themselves and never move one for a client, so a request is granted only if it asks for the present placement.

 - v0: flexible (KIP-455)
 - v1: allow_replication_factor_change (KIP-860)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.topic_creation import check_nodes
from kgateway.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kgateway.wire.errors import ErrorCode, KafkaError

Asked = AlterPartitionReassignmentsRequest.Topic.Partition
Answer = AlterPartitionReassignmentsResponse.Response.Partition


@api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    versions="0-1",
    needs=Operation.ALTER.on(Resource.CLUSTER),
)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[
            AlterPartitionReassignmentsResponse.Response(
                name=topic.name, partitions=[_answer(topic.name, asked, context) for asked in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _answer(name: str, asked: Asked, context: Context) -> Answer:
    index = asked.partition_index
    try:
        _check(name, asked, context)
    except KafkaError as error:
        code = context.refuse(error, f"{name}-{index}")
        return Answer(partition_index=index, error_code=code, error_message=error.message)
    return Answer(partition_index=index, error_code=ErrorCode.NONE, error_message=None)


def _check(name: str, asked: Asked, context: Context) -> None:
    """
    Refuse any placement but the present one.
    """
    view, index = context.broker.view(), asked.partition_index
    topic = view.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if asked.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name}-{index} is not being reassigned")
    check_nodes(asked.replicas, view, len(asked.replicas))
    now = topic.partitions[index].replicas
    if {*asked.replicas} != {*now}:
        reason = f"{name}-{index} is on {', '.join(map(str, now))}: gateways distribute partitions among themselves"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
