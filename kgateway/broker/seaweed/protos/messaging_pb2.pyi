from kgateway.broker.seaweed.protos import schema_pb2 as _schema_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindBrokerLeaderRequest(_message.Message):
    __slots__ = ("filer_group",)
    FILER_GROUP_FIELD_NUMBER: _ClassVar[int]
    filer_group: str
    def __init__(self, filer_group: _Optional[str] = ...) -> None: ...

class FindBrokerLeaderResponse(_message.Message):
    __slots__ = ("broker",)
    BROKER_FIELD_NUMBER: _ClassVar[int]
    broker: str
    def __init__(self, broker: _Optional[str] = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[_schema_pb2.Topic]
    def __init__(self, topics: _Optional[_Iterable[_Union[_schema_pb2.Topic, _Mapping]]] = ...) -> None: ...

class TopicExistsRequest(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ...) -> None: ...

class TopicExistsResponse(_message.Message):
    __slots__ = ("exists",)
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    def __init__(self, exists: bool = ...) -> None: ...

class TopicRetention(_message.Message):
    __slots__ = ("retention_seconds", "enabled")
    RETENTION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    retention_seconds: int
    enabled: bool
    def __init__(self, retention_seconds: _Optional[int] = ..., enabled: bool = ...) -> None: ...

class BrokerPartitionAssignment(_message.Message):
    __slots__ = ("partition", "leader_broker", "follower_broker")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_BROKER_FIELD_NUMBER: _ClassVar[int]
    FOLLOWER_BROKER_FIELD_NUMBER: _ClassVar[int]
    partition: _schema_pb2.Partition
    leader_broker: str
    follower_broker: str
    def __init__(self, partition: _Optional[_Union[_schema_pb2.Partition, _Mapping]] = ..., leader_broker: _Optional[str] = ..., follower_broker: _Optional[str] = ...) -> None: ...

class ConfigureTopicRequest(_message.Message):
    __slots__ = ("topic", "partition_count", "retention", "message_record_type", "key_columns", "schema_format")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_RECORD_TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FORMAT_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    partition_count: int
    retention: TopicRetention
    message_record_type: _schema_pb2.RecordType
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    schema_format: str
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., partition_count: _Optional[int] = ..., retention: _Optional[_Union[TopicRetention, _Mapping]] = ..., message_record_type: _Optional[_Union[_schema_pb2.RecordType, _Mapping]] = ..., key_columns: _Optional[_Iterable[str]] = ..., schema_format: _Optional[str] = ...) -> None: ...

class ConfigureTopicResponse(_message.Message):
    __slots__ = ("broker_partition_assignments", "retention", "message_record_type", "key_columns", "schema_format")
    BROKER_PARTITION_ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_RECORD_TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FORMAT_FIELD_NUMBER: _ClassVar[int]
    broker_partition_assignments: _containers.RepeatedCompositeFieldContainer[BrokerPartitionAssignment]
    retention: TopicRetention
    message_record_type: _schema_pb2.RecordType
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    schema_format: str
    def __init__(self, broker_partition_assignments: _Optional[_Iterable[_Union[BrokerPartitionAssignment, _Mapping]]] = ..., retention: _Optional[_Union[TopicRetention, _Mapping]] = ..., message_record_type: _Optional[_Union[_schema_pb2.RecordType, _Mapping]] = ..., key_columns: _Optional[_Iterable[str]] = ..., schema_format: _Optional[str] = ...) -> None: ...

class LookupTopicBrokersRequest(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ...) -> None: ...

class LookupTopicBrokersResponse(_message.Message):
    __slots__ = ("topic", "broker_partition_assignments")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    BROKER_PARTITION_ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    broker_partition_assignments: _containers.RepeatedCompositeFieldContainer[BrokerPartitionAssignment]
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., broker_partition_assignments: _Optional[_Iterable[_Union[BrokerPartitionAssignment, _Mapping]]] = ...) -> None: ...

class GetTopicConfigurationRequest(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ...) -> None: ...

class GetTopicConfigurationResponse(_message.Message):
    __slots__ = ("topic", "partition_count", "broker_partition_assignments", "created_at_ns", "last_updated_ns", "retention", "message_record_type", "key_columns", "schema_format")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    BROKER_PARTITION_ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATED_NS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_RECORD_TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FORMAT_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    partition_count: int
    broker_partition_assignments: _containers.RepeatedCompositeFieldContainer[BrokerPartitionAssignment]
    created_at_ns: int
    last_updated_ns: int
    retention: TopicRetention
    message_record_type: _schema_pb2.RecordType
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    schema_format: str
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., partition_count: _Optional[int] = ..., broker_partition_assignments: _Optional[_Iterable[_Union[BrokerPartitionAssignment, _Mapping]]] = ..., created_at_ns: _Optional[int] = ..., last_updated_ns: _Optional[int] = ..., retention: _Optional[_Union[TopicRetention, _Mapping]] = ..., message_record_type: _Optional[_Union[_schema_pb2.RecordType, _Mapping]] = ..., key_columns: _Optional[_Iterable[str]] = ..., schema_format: _Optional[str] = ...) -> None: ...

class GetTopicPublishersRequest(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ...) -> None: ...

class GetTopicPublishersResponse(_message.Message):
    __slots__ = ("publishers",)
    PUBLISHERS_FIELD_NUMBER: _ClassVar[int]
    publishers: _containers.RepeatedCompositeFieldContainer[TopicPublisher]
    def __init__(self, publishers: _Optional[_Iterable[_Union[TopicPublisher, _Mapping]]] = ...) -> None: ...

class TopicPublisher(_message.Message):
    __slots__ = ("publisher_name", "client_id", "partition", "connect_time_ns", "last_seen_time_ns", "broker", "is_active", "last_published_offset", "last_acked_offset")
    PUBLISHER_NAME_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CONNECT_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    BROKER_FIELD_NUMBER: _ClassVar[int]
    IS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LAST_PUBLISHED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_ACKED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    publisher_name: str
    client_id: str
    partition: _schema_pb2.Partition
    connect_time_ns: int
    last_seen_time_ns: int
    broker: str
    is_active: bool
    last_published_offset: int
    last_acked_offset: int
    def __init__(self, publisher_name: _Optional[str] = ..., client_id: _Optional[str] = ..., partition: _Optional[_Union[_schema_pb2.Partition, _Mapping]] = ..., connect_time_ns: _Optional[int] = ..., last_seen_time_ns: _Optional[int] = ..., broker: _Optional[str] = ..., is_active: bool = ..., last_published_offset: _Optional[int] = ..., last_acked_offset: _Optional[int] = ...) -> None: ...

class AssignTopicPartitionsRequest(_message.Message):
    __slots__ = ("topic", "broker_partition_assignments", "is_leader", "is_draining")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    BROKER_PARTITION_ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    IS_DRAINING_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    broker_partition_assignments: _containers.RepeatedCompositeFieldContainer[BrokerPartitionAssignment]
    is_leader: bool
    is_draining: bool
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., broker_partition_assignments: _Optional[_Iterable[_Union[BrokerPartitionAssignment, _Mapping]]] = ..., is_leader: bool = ..., is_draining: bool = ...) -> None: ...

class AssignTopicPartitionsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DataMessage(_message.Message):
    __slots__ = ("key", "value", "ts_ns")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TS_NS_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    ts_ns: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., ts_ns: _Optional[int] = ...) -> None: ...

class PublishMessageRequest(_message.Message):
    __slots__ = ("init", "data")
    class InitMessage(_message.Message):
        __slots__ = ("topic", "partition", "ack_interval", "follower_broker", "publisher_name")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        PARTITION_FIELD_NUMBER: _ClassVar[int]
        ACK_INTERVAL_FIELD_NUMBER: _ClassVar[int]
        FOLLOWER_BROKER_FIELD_NUMBER: _ClassVar[int]
        PUBLISHER_NAME_FIELD_NUMBER: _ClassVar[int]
        topic: _schema_pb2.Topic
        partition: _schema_pb2.Partition
        ack_interval: int
        follower_broker: str
        publisher_name: str
        def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., partition: _Optional[_Union[_schema_pb2.Partition, _Mapping]] = ..., ack_interval: _Optional[int] = ..., follower_broker: _Optional[str] = ..., publisher_name: _Optional[str] = ...) -> None: ...
    INIT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    init: PublishMessageRequest.InitMessage
    data: DataMessage
    def __init__(self, init: _Optional[_Union[PublishMessageRequest.InitMessage, _Mapping]] = ..., data: _Optional[_Union[DataMessage, _Mapping]] = ...) -> None: ...

class PublishMessageResponse(_message.Message):
    __slots__ = ("ack_ts_ns", "error", "should_close", "error_code", "assigned_offset")
    ACK_TS_NS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SHOULD_CLOSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ack_ts_ns: int
    error: str
    should_close: bool
    error_code: int
    assigned_offset: int
    def __init__(self, ack_ts_ns: _Optional[int] = ..., error: _Optional[str] = ..., should_close: bool = ..., error_code: _Optional[int] = ..., assigned_offset: _Optional[int] = ...) -> None: ...

class FetchMessageRequest(_message.Message):
    __slots__ = ("topic", "partition", "start_offset", "max_bytes", "max_messages", "max_wait_ms", "min_bytes", "consumer_group", "consumer_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_GROUP_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    partition: _schema_pb2.Partition
    start_offset: int
    max_bytes: int
    max_messages: int
    max_wait_ms: int
    min_bytes: int
    consumer_group: str
    consumer_id: str
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., partition: _Optional[_Union[_schema_pb2.Partition, _Mapping]] = ..., start_offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., max_messages: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., min_bytes: _Optional[int] = ..., consumer_group: _Optional[str] = ..., consumer_id: _Optional[str] = ...) -> None: ...

class FetchMessageResponse(_message.Message):
    __slots__ = ("messages", "high_water_mark", "log_start_offset", "end_of_partition", "error", "error_code", "next_offset")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATER_MARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OF_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[DataMessage]
    high_water_mark: int
    log_start_offset: int
    end_of_partition: bool
    error: str
    error_code: int
    next_offset: int
    def __init__(self, messages: _Optional[_Iterable[_Union[DataMessage, _Mapping]]] = ..., high_water_mark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., end_of_partition: bool = ..., error: _Optional[str] = ..., error_code: _Optional[int] = ..., next_offset: _Optional[int] = ...) -> None: ...

class GetPartitionRangeInfoRequest(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: _schema_pb2.Topic
    partition: _schema_pb2.Partition
    def __init__(self, topic: _Optional[_Union[_schema_pb2.Topic, _Mapping]] = ..., partition: _Optional[_Union[_schema_pb2.Partition, _Mapping]] = ...) -> None: ...

class OffsetRangeInfo(_message.Message):
    __slots__ = ("earliest_offset", "latest_offset", "high_water_mark")
    EARLIEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LATEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATER_MARK_FIELD_NUMBER: _ClassVar[int]
    earliest_offset: int
    latest_offset: int
    high_water_mark: int
    def __init__(self, earliest_offset: _Optional[int] = ..., latest_offset: _Optional[int] = ..., high_water_mark: _Optional[int] = ...) -> None: ...

class GetPartitionRangeInfoResponse(_message.Message):
    __slots__ = ("offset_range", "record_count", "active_subscriptions", "error")
    OFFSET_RANGE_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    offset_range: OffsetRangeInfo
    record_count: int
    active_subscriptions: int
    error: str
    def __init__(self, offset_range: _Optional[_Union[OffsetRangeInfo, _Mapping]] = ..., record_count: _Optional[int] = ..., active_subscriptions: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
