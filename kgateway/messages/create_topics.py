"""
CreateTopics: creates topics with their partitions and configs.

 - v1: validate_only; error_message
 - v2: throttle_time_ms
 - v3: over quota, the answer comes before the delay (KIP-219)
 - v4: -1 partitions or replicas stand for the broker's defaults (KIP-464)
 - v5: flexible; the topic's partitions, replicas and configs come back (KIP-525)
 - v6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
 - v7: topic_id of the new topic (KIP-516)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32
from kgateway.wire.uuids import Uuid


class CreateTopicsRequest(Message, key=19, versions="0-7", flexible="5+"):
    class Topic(Struct):
        class Assignment(Struct):
            partition_index: i32
            broker_ids: list[i32]  # the first is the preferred leader

        class Config(Struct):
            name: str
            value: str | None

        name: str
        num_partitions: i32  # -1: see assignments, or the default
        replication_factor: i16  # -1: see assignments, or the default
        assignments: list[Assignment]  # empty: the cluster chooses
        configs: list[Config]

    topics: list[Topic]
    timeout_ms: i32 = v(default=60000)
    validate_only: bool = v("1+")


class CreateTopicsResponse(Message, key=19, versions="0-7", flexible="5+"):
    class Topic(Struct):
        class Config(Struct):
            name: str
            value: str | None
            read_only: bool
            config_source: i8 = v(default=-1)  # numbers as in DescribeConfigs
            is_sensitive: bool

        name: str
        topic_id: Uuid = v("7+")
        error_code: i16
        error_message: str | None = v("1+")
        topic_config_error_code: i16 = v("5+", tag=0)  # why configs is null
        num_partitions: i32 = v("5+", default=-1)
        replication_factor: i16 = v("5+", default=-1)
        configs: list[Config] | None = v("5+")

    throttle_time_ms: i32 = v("2+")
    topics: list[Topic]
