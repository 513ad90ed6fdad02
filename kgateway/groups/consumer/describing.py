"""
A consumer group as ConsumerGroupDescribe tells it.
"""

from kgateway.cluster.view import ClusterView
from kgateway.groups.consumer.assignment import Assignment as Partitions
from kgateway.groups.consumer.state import GroupState
from kgateway.messages.consumer_group_describe import Assignment, ConsumerGroupDescribeResponse, TopicPartitions
from kgateway.wire.errors import ErrorCode

Described = ConsumerGroupDescribeResponse.Group
_Member = Described.Member
_CLASSIC, _CONSUMER = 0, 1


def describe(state: GroupState, group_state: str, assignor: str, view: ClusterView) -> Described:
    """
    The group, with the topics that are there.
    """
    return Described(
        error_code=ErrorCode.NONE,
        group_id=state.group_id,
        group_state=group_state,
        group_epoch=state.epoch_now.number,
        assignment_epoch=state.targets_now.epoch,
        assignor_name=assignor,
        members=[_member(state, member_id, view) for member_id in state.profiles],
    )


def _member(state: GroupState, member_id: str, view: ClusterView) -> _Member:
    profile, progress = state.profiles[member_id], state.progress_of(member_id)
    return _Member(
        member_id=member_id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=progress.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topic_names),
        subscribed_topic_regex=profile.pattern,
        assignment=_assignment(progress.owned, view),
        target_assignment=_assignment(state.target_of(member_id), view),
        member_type=_CLASSIC if profile.classic else _CONSUMER,
    )


def _assignment(partitions: Partitions, view: ClusterView) -> Assignment:
    topics = [
        (view.topics_by_id[topic_id], indexes)
        for topic_id, indexes in partitions.items()
        if topic_id in view.topics_by_id
    ]
    named = [
        TopicPartitions(topic_id=topic.id, topic_name=topic.name, partitions=sorted(found)) for topic, found in topics
    ]
    return Assignment(topic_partitions=named)
