"""
AlterConfigs: replaces all configs of a resource.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i8, i16, i32


class AlterConfigsRequest(Message, key=33, versions="0-2", flexible="2+"):
    class Resource(Struct):
        class Config(Struct):
            name: str
            value: str | None  # null is refused

        resource_type: i8  # numbers as in DescribeConfigs
        resource_name: str
        configs: list[Config]  # keys left out go back to their defaults

    resources: list[Resource]
    validate_only: bool


class AlterConfigsResponse(Message, key=33, versions="0-2", flexible="2+"):
    class Response(Struct):
        error_code: i16
        error_message: str | None
        resource_type: i8
        resource_name: str

    throttle_time_ms: i32
    responses: list[Response]
