"""
ListPartitionReassignments: the moves of partitions that are under way. There are none: gateways distribute partitions
among themselves.

 - v0: flexible (KIP-455)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kgateway.wire.errors import ErrorCode


@api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    versions="0",
    needs=Operation.DESCRIBE.on(Resource.CLUSTER),
)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    context.demand(Operation.DESCRIBE, Resource.CLUSTER)
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=[]
    )
