"""
DescribeCluster: describes the brokers, the controller and the id of the cluster.

 - v1: endpoint_type, to ask for the controllers instead (KIP-919)
 - v2: include_fenced_brokers, is_fenced (KIP-1073)
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class DescribeClusterRequest(Message, key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool
    endpoint_type: i8 = v("1+", default=1)  # 1 brokers, 2 controllers
    include_fenced_brokers: bool = v("2+")


class DescribeClusterResponse(Message, key=60, versions="0-2", flexible="0+"):
    class Broker(Struct):
        broker_id: i32
        host: str
        port: i32
        rack: str | None = v(default=None)
        is_fenced: bool = v("2+")

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    endpoint_type: i8 = v("1+", default=1)  # 1 brokers, 2 controllers
    cluster_id: str
    controller_id: i32 = v(default=-1)  # a KRaft broker names any live broker
    brokers: list[Broker]
    cluster_authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)  # bit n: AclOperation n is allowed
