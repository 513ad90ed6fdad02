"""
Groups with members, for tests of handlers that treat these otherwise.
"""

from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.groups.rows import Row
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.wire.codec import encode
from tests.serving import START_MS, Serving


def commit(serving: Serving, group_id: str, topic: str, index: int = 0, offset: int = 1) -> None:
    """
    Commit as a consumer that is no member.
    """
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=START_MS)
    serving.parts.service(Groups).simple(group_id).offsets.commit([(Place(topic, index), value)])


def with_member(serving: Serving, group_id: str, protocol_type: str = "consumer", topic: str = "orders") -> None:
    """
    A stable classic group of one member, which reads the topic, as an earlier coordinator has left it.
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
    groups = serving.parts.service(Groups)
    groups.simple(group_id)
    groups.write(group_id)([Row(GroupMetadataKey(group=group_id), value)])
    groups.stop()
    serving.parts.services.clear()  # the next one reads what was written
