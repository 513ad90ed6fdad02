"""
DescribeQuorum: the state of the quorum of Kafka's metadata log. It is refused, because there is no such log: gateways
store topics, configs and groups in other ways, without voters or offsets.

 - v1: last_fetch_timestamp, last_caught_up_timestamp (KIP-836)
 - v2: error_message, replica_directory_id, nodes (KIP-853)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(DescribeQuorumRequest, DescribeQuorumResponse, versions="0-2", needs=Operation.DESCRIBE.on(Resource.CLUSTER))
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    context.demand(Operation.DESCRIBE, Resource.CLUSTER)
    reason = f"there is no metadata quorum: kgateway keeps the cluster's metadata ({context.broker.description})"
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{reason}, and no controllers that vote")
