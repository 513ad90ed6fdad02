"""
Records of `__consumer_offsets`: Streams groups (KIP-1071).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64, u16


class LastAssignmentConfig(Struct):
    key: str
    value: str


class Endpoint(Struct):
    host: str
    port: u16


class KeyValue(Struct):
    key: str
    value: str


class TargetTaskIds(Struct):
    subtopology_id: str
    partitions: list[i32]


class CurrentTaskIds(Struct):
    subtopology_id: str
    partitions: list[i32]
    # commits from before are fenced; null except for active tasks
    assignment_epochs: list[i32] | None = v(nullable="0+", tag=0)


class TopicConfig(Struct):
    key: str
    value: str


class TopicInfo(Struct):
    name: str
    partitions: i32  # 0: free; of a changelog always 0
    replication_factor: i16  # 0: the broker's default
    topic_configs: list[TopicConfig]


class StreamsGroupMetadataKey(Message, key=17, versions="0"):
    """
    Key of record type 17: one Streams group (KIP-1071).
    """

    group_id: str


class StreamsGroupMetadataValue(Message, key=17, versions="0", flexible="0+"):
    """
    Value of record type 17: the epoch of a Streams group, and a hash of its topics.
    """

    epoch: i32
    metadata_hash: i64  # a change means rebalance
    validated_topology_epoch: i32 = v(default=-1, tag=0)  # whose topics were found in order; -1: none
    last_assignment_configs: list[LastAssignmentConfig] | None = v(nullable="0+", tag=1)  # null: none recorded


class StreamsGroupMemberMetadataKey(Message, key=19, versions="0"):
    """
    Key of record type 19: one member of a Streams group.
    """

    group_id: str
    member_id: str


class StreamsGroupMemberMetadataValue(Message, key=19, versions="0", flexible="0+"):
    """
    Value of record type 19: who a member of a Streams group is and what it runs.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: i32 = v(default=-1)
    topology_epoch: i32
    process_id: str  # shared by the members of one process
    user_endpoint: Endpoint | None = v(default=None)  # for interactive queries; null: none
    client_tags: list[KeyValue]  # for rack-aware assignment


class StreamsGroupTargetAssignmentMetadataKey(Message, key=20, versions="0"):
    """
    Key of record type 20: the target assignment of one Streams group.
    """

    group_id: str


class StreamsGroupTargetAssignmentMetadataValue(Message, key=20, versions="0", flexible="0+"):
    """
    Value of record type 20: the group epoch the targets were made for; written after them.
    """

    assignment_epoch: i32
    assignment_timestamp: i64 = v(default=0, tag=0)  # ms, 0: unknown (KIP-1263)


class StreamsGroupTargetAssignmentMemberKey(Message, key=21, versions="0"):
    """
    Key of record type 21: the target of one member of a Streams group.
    """

    group_id: str
    member_id: str


class StreamsGroupTargetAssignmentMemberValue(Message, key=21, versions="0", flexible="0+"):
    """
    Value of record type 21: the tasks a member is to run in the end.
    """

    active_tasks: list[TargetTaskIds]
    standby_tasks: list[TargetTaskIds]
    warmup_tasks: list[TargetTaskIds]


class StreamsGroupCurrentMemberAssignmentKey(Message, key=22, versions="0"):
    """
    Key of record type 22: what one member of a Streams group runs now.
    """

    group_id: str
    member_id: str


class StreamsGroupCurrentMemberAssignmentValue(Message, key=22, versions="0", flexible="0+"):
    """
    Value of record type 22: how far a member is on the way to its target.
    """

    member_epoch: i32
    previous_member_epoch: i32  # taken too, if the member missed the answer
    state: i8  # 1 stable, 2 has to revoke, 3 waits for others
    active_tasks: list[CurrentTaskIds]
    standby_tasks: list[CurrentTaskIds]
    warmup_tasks: list[CurrentTaskIds]
    active_tasks_pending_revocation: list[CurrentTaskIds]
    standby_tasks_pending_revocation: list[CurrentTaskIds]
    warmup_tasks_pending_revocation: list[CurrentTaskIds]


class StreamsGroupTopologyKey(Message, key=23, versions="0"):
    """
    Key of record type 23: the topology of one Streams group.
    """

    group_id: str


class StreamsGroupTopologyValue(Message, key=23, versions="0", flexible="0+"):
    """
    Value of record type 23: the topology the group's members run, as the first of them sent it.
    """

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
