"""
StreamsGroupDescribe: the state, the topology and the members of Streams groups (KIP-1071).
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64, u16


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


class Assignment(Struct):
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class KeyValue(Struct):
    key: str
    value: str


class TopicInfo(Struct):
    name: str
    partitions: i32
    replication_factor: i16
    topic_configs: list[KeyValue]


class StreamsGroupDescribeRequest(Message, key=89, versions="0", flexible="0+"):
    """
    Names the groups to describe.
    """

    group_ids: list[str]
    include_authorized_operations: bool


class StreamsGroupDescribeResponse(Message, key=89, versions="0", flexible="0+"):
    """
    Each group with its epochs, its topology, its members and their tasks.
    """

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
