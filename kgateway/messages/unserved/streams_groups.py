"""
StreamsGroupHeartbeat: lets a member join, stay in and leave a Kafka Streams group (KIP-1071).

StreamsGroupDescribe: describes Kafka Streams groups, their topologies and their members (KIP-1071).
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64, u16


class KeyValue(Struct):
    key: str
    value: str


class TopicInfo(Struct):
    name: str
    partitions: i32  # 0: free; of a changelog always 0
    replication_factor: i16
    topic_configs: list[KeyValue]


class Endpoint(Struct):
    host: str
    port: u16


class TaskOffset(Struct):
    subtopology_id: str
    partition: i32
    offset: i64


class TaskIds(Struct):
    subtopology_id: str
    partitions: list[i32]


class Status(Struct):
    status_code: i8  # 0 stale topology, 1-3 topics amiss, 4 shutdown, 5 delayed
    status_detail: str


class TopicPartition(Struct):
    topic: str
    partitions: list[i32]


class StreamsGroupHeartbeatRequest(Message, key=88, versions="0", flexible="0+"):
    """
    A member says it is alive, what it runs and what it owns; null means as before.
    """

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: list[i16]
                source_topic_regex: list[i16]
                repartition_source_topics: list[i16]

            subtopology_id: str
            source_topics: list[str]
            source_topic_regex: list[str]
            state_changelog_topics: list[TopicInfo]
            repartition_sink_topics: list[str]
            repartition_source_topics: list[TopicInfo]
            copartition_groups: list[CopartitionGroup]  # indexes into the lists above

        epoch: i32
        subtopologies: list[Subtopology]

    group_id: str
    member_id: str
    member_epoch: i32  # 0 joins, -1 leaves, -2 leaves to rejoin (static)
    endpoint_information_epoch: i32
    instance_id: str | None = v(default=None)
    rack_id: str | None = v(default=None)
    rebalance_timeout_ms: i32 = v(default=-1)  # -1: as before
    topology: Topology | None = v(default=None)  # only on joining, null else
    active_tasks: list[TaskIds] | None = v(default=None)
    standby_tasks: list[TaskIds] | None = v(default=None)
    warmup_tasks: list[TaskIds] | None = v(default=None)
    process_id: str | None = v(default=None)
    user_endpoint: Endpoint | None = v(default=None)
    client_tags: list[KeyValue] | None = v(default=None)
    task_offsets: list[TaskOffset] | None = v(default=None)
    task_end_offsets: list[TaskOffset] | None = v(default=None)
    shutdown_application: bool = v(default=False)


class StreamsGroupHeartbeatResponse(Message, key=88, versions="0", flexible="0+"):
    class PartitionsByUserEndpoint(Struct):
        user_endpoint: Endpoint
        active_partitions: list[TopicPartition]
        standby_partitions: list[TopicPartition]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    member_id: str
    member_epoch: i32
    heartbeat_interval_ms: i32
    acceptable_recovery_lag: i32
    task_offset_interval_ms: i32
    status: list[Status] | None
    active_tasks: list[TaskIds] | None = v(default=None)
    standby_tasks: list[TaskIds] | None = v(default=None)
    warmup_tasks: list[TaskIds] | None = v(default=None)
    endpoint_information_epoch: i32
    partitions_by_user_endpoint: list[PartitionsByUserEndpoint] | None = v(default=None)


class Assignment(Struct):
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class StreamsGroupDescribeRequest(Message, key=89, versions="0", flexible="0+"):
    group_ids: list[str]
    include_authorized_operations: bool


class StreamsGroupDescribeResponse(Message, key=89, versions="0", flexible="0+"):
    class Group(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: str
                source_topics: list[str]
                repartition_sink_topics: list[str]
                state_changelog_topics: list[TopicInfo]
                repartition_source_topics: list[TopicInfo]

            epoch: i32
            subtopologies: list[Subtopology] | None = v(default=None)  # null: not initialized, or topics amiss

        class Member(Struct):
            member_id: str
            member_epoch: i32
            instance_id: str | None = v(default=None)
            rack_id: str | None = v(default=None)
            client_id: str
            client_host: str
            topology_epoch: i32
            process_id: str
            user_endpoint: Endpoint | None = v(default=None)
            client_tags: list[KeyValue]
            task_offsets: list[TaskOffset]
            task_end_offsets: list[TaskOffset]
            assignment: Assignment  # owned now
            target_assignment: Assignment  # to be owned in the end
            is_classic: bool

        error_code: i16
        error_message: str | None = v(default=None)
        group_id: str
        group_state: str  # as of consumer groups, or NotReady; "" on error
        group_epoch: i32
        assignment_epoch: i32
        topology: Topology | None = v(default=None)  # null on error
        members: list[Member]
        authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)  # bit n: AclOperation n is allowed

    throttle_time_ms: i32
    groups: list[Group]
