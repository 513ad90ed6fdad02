"""
ListConfigResources: lists the resources that have configs.

 - v0: client metrics only, under the name ListClientMetricsResources (KIP-1000)
 - v1: resource_types, resource_type: the other kinds too (KIP-1142)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class ListConfigResourcesRequest(Message, key=74, versions="0-1", flexible="0+"):
    resource_types: list[i8] = v("1+")  # 2 topic, 4 broker, 8 logger, 16 metrics, 32 group; [] all


class ListConfigResourcesResponse(Message, key=74, versions="0-1", flexible="0+"):
    class ConfigResource(Struct):
        resource_name: str
        resource_type: i8 = v("1+", default=16)  # as in the request; in v0 always 16

    throttle_time_ms: i32
    error_code: i16
    config_resources: list[ConfigResource]
