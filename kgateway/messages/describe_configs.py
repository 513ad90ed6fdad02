"""
DescribeConfigs: describes the configs of topics, brokers and other resources.

 - v1: config_source in place of is_default; synonyms, on request (KIP-226)
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: config_type; documentation, on request (KIP-569)
 - v4: flexible
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class DescribeConfigsRequest(Message, key=32, versions="0-4", flexible="4+"):
    class Resource(Struct):
        resource_type: i8  # 2 topic, 4 broker, 8 logger, 16 client metrics, 32 group
        resource_name: str  # a broker is named by id; empty: all brokers
        configuration_keys: list[str] | None  # null: all

    resources: list[Resource]
    include_synonyms: bool = v("1+")
    include_documentation: bool = v("3+")


class DescribeConfigsResponse(Message, key=32, versions="0-4", flexible="4+"):
    class Result(Struct):
        class Config(Struct):
            class Synonym(Struct):
                name: str
                value: str | None
                source: i8

            name: str
            value: str | None  # null when sensitive, or not set
            read_only: bool
            is_default: bool = v("0")
            config_source: i8 = v("1+", default=-1)  # 1 topic, 2 broker, 3 brokers, 4 file, 5 default, ...
            is_sensitive: bool
            synonyms: list[Synonym] = v("1+")
            config_type: i8 = v("3+")  # from 1: bool str int short long double list class password
            documentation: str | None = v("3+")

        error_code: i16
        error_message: str | None
        resource_type: i8
        resource_name: str
        configs: list[Config]

    throttle_time_ms: i32
    results: list[Result]
