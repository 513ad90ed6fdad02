"""
Groups with members, for handlers that treat them differently.
"""

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.records import Row
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.topic_partition import TopicPartition
from kgateway.wire.codec import encode
from tests.serving import START_MS, Serving


def commit(serving: Serving, group_id: str, topic: str, index: int = 0, offset: int = 1) -> None:
    """
    Commit as a consumer outside the group.
    """
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=START_MS)
    serving.parts.service(GroupCoordinator).entry_or_new(group_id).offsets.commit(
        [(TopicPartition(topic, index), value)]
    )


def with_member(serving: Serving, group_id: str, protocol_type: str = "consumer", topic: str = "orders") -> None:
    """
    A stable classic group of one member that reads the topic, as an earlier coordinator has left it.
    """
    subscription = (0).to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=[topic], user_data=None), 0)
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=60_000,
        subscription=subscription,
        assignment=b"",
    )
    value = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=1,
        protocol="range",
        leader="m",
        current_state_timestamp=START_MS,
        members=[member],
    )
    groups = serving.parts.service(GroupCoordinator)
    groups.entry_or_new(group_id)
    groups.write(group_id)([Row(GroupMetadataKey(group=group_id), value)])
    groups.stop()
    serving.parts.services.clear()  # the next coordinator replays it
