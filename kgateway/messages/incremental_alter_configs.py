"""
IncrementalAlterConfigs: changes individual configs of a resource (KIP-339).

 - v1: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i8, i16, i32


class IncrementalAlterConfigsRequest(Message, key=44, versions="0-1", flexible="1+"):
    class Resource(Struct):
        class Config(Struct):
            name: str
            config_operation: i8  # 0 set, 1 delete, 2 append, 3 subtract; 2-3 for lists
            value: str | None  # null only with delete

        resource_type: i8  # numbers as in DescribeConfigs
        resource_name: str
        configs: list[Config]

    resources: list[Resource]
    validate_only: bool


class IncrementalAlterConfigsResponse(Message, key=44, versions="0-1", flexible="1+"):
    class Response(Struct):
        error_code: i16
        error_message: str | None
        resource_type: i8
        resource_name: str

    throttle_time_ms: i32
    responses: list[Response]
