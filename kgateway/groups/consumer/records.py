"""
The state of a consumer group as rows, and back.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kgateway.groups.assignors.assignment import Assignment, Owned, assignment_of
from kgateway.groups.consumer.member import Classic, ClassicProtocol, MemberState, Profile, Progress
from kgateway.groups.records import Row
from kgateway.messages.stored import consumer_group as stored
from kgateway.wire.uuids import Uuid

_KNOWN_STATES = frozenset(MemberState)
_Target = stored.ConsumerGroupTargetAssignmentMemberValue.TopicPartition
_ClassicValue = stored.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata


class Epoch(NamedTuple):
    """
    The group epoch: it rises when members or topics change.
    """

    number: int
    metadata_hash: int


class TargetMetadata(NamedTuple):
    """
    The epoch for which the targets were made, and when.
    """

    epoch: int
    made_ms: int


class Matches(NamedTuple):
    """
    The topics that a regular expression matches, in the view of this epoch, and when they were looked up.
    """

    topics: frozenset[str]
    view_epoch: int
    made_ms: int


def epoch_row(group_id: str, epoch: Epoch | None) -> Row:
    value = epoch and stored.ConsumerGroupMetadataValue(epoch=epoch.number, metadata_hash=epoch.metadata_hash)
    return Row(stored.ConsumerGroupMetadataKey(group_id=group_id), value)


def epoch_from(value: stored.ConsumerGroupMetadataValue) -> Epoch:
    return Epoch(value.epoch, value.metadata_hash)


def old_topics_row(group_id: str) -> Row:
    """
    Deletes the topics as groups before Kafka 4.1 stored them; now their hash is beside the epoch.
    """
    return Row(stored.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_metadata_row(group_id: str, targets: TargetMetadata | None) -> Row:
    value = targets and stored.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=targets.epoch, assignment_timestamp=targets.made_ms
    )
    return Row(stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_metadata_from(value: stored.ConsumerGroupTargetAssignmentMetadataValue) -> TargetMetadata:
    return TargetMetadata(value.assignment_epoch, value.assignment_timestamp)


def target_row(group_id: str, member_id: str, target: Assignment | None) -> Row:
    key = stored.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if target is None:
        return Row(key, None)
    named = [_Target(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in sorted(target)]
    return Row(key, stored.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=named))


def target_from(value: stored.ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return assignment_of(value.topic_partitions)


def profile_row(group_id: str, member_id: str, profile: Profile | None) -> Row:
    key = stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return Row(key, None if profile is None else _profile_value(profile))


def _profile_value(profile: Profile) -> stored.ConsumerGroupMemberMetadataValue:
    return stored.ConsumerGroupMemberMetadataValue(
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topic_names),
        subscribed_topic_regex=profile.pattern,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        server_assignor=profile.assignor,
        classic_member_metadata=None if profile.classic is None else _classic_value(profile.classic),
    )


def _classic_value(classic: Classic) -> _ClassicValue:
    protocols = [_ClassicValue.SupportedProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return _ClassicValue(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def profile_from(value: stored.ConsumerGroupMemberMetadataValue) -> Profile:
    classic = value.classic_member_metadata
    return Profile(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        pattern=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None if classic is None else _classic_from(classic),
    )


def _classic_from(value: _ClassicValue) -> Classic:
    protocols = [ClassicProtocol(protocol.name, bytes(protocol.metadata)) for protocol in value.supported_protocols]
    return Classic(value.session_timeout_ms, tuple(protocols))


def progress_row(group_id: str, member_id: str, progress: Progress | None) -> Row:
    key = stored.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    if progress is None:
        return Row(key, None)
    value = stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=progress.epoch,
        previous_member_epoch=progress.previous_epoch,
        state=progress.state,
        assigned_partitions=_owned_value(progress.assigned),
        partitions_pending_revocation=_owned_value(progress.revoking),
    )
    return Row(key, value)


def _owned_value(owned: Owned) -> list[stored.TopicPartitions]:
    found = []
    for topic_id in sorted(owned):
        partitions = dict(sorted(owned[topic_id].items()))
        epochs = list(partitions.values())
        found.append(stored.TopicPartitions(topic_id=topic_id, partitions=list(partitions), assignment_epochs=epochs))
    return found


def progress_from(value: stored.ConsumerGroupCurrentMemberAssignmentValue) -> Progress:
    known = value.state in _KNOWN_STATES
    return Progress(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_owned_from(value.assigned_partitions, value.member_epoch),
        revoking=_owned_from(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned_from(named: Sequence[stored.TopicPartitions], member_epoch: int) -> Owned:
    """
    If a server before Kafka 4.3 has written no epochs, all partitions are owned since the member's own epoch.
    """
    owned: dict[Uuid, dict[int, int]] = {}
    for topic in named:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [member_epoch] * len(topic.partitions)
        owned.setdefault(topic.topic_id, {}).update(zip(topic.partitions, epochs, strict=True))
    return owned


def matches_row(group_id: str, pattern: str, matches: Matches | None) -> Row:
    key = stored.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    value = matches and stored.ConsumerGroupRegularExpressionValue(
        topics=sorted(matches.topics), version=matches.view_epoch, timestamp=matches.made_ms
    )
    return Row(key, value)


def matches_from(value: stored.ConsumerGroupRegularExpressionValue) -> Matches:
    return Matches(frozenset(value.topics), value.version, value.timestamp)
