"""
All that is true of a consumer group: what its rows say, and what can be looked up in them.

Each `set_` is a row: whoever calls them with what rows say makes the group again. Progress without a profile is of no
member: it is there only while rows are replayed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kgateway.groups.consumer.assignment import NOTHING, Assignment, Owned
from kgateway.groups.consumer.member import INITIAL_EPOCH, NEW, Profile, Progress
from kgateway.groups.consumer.rows import (
    Epoch,
    Matches,
    Targets,
    epoch_from,
    epoch_row,
    matches_from,
    matches_row,
    old_topics_row,
    profile_from,
    profile_row,
    progress_from,
    progress_row,
    target_from,
    target_row,
    targets_from,
    targets_row,
)
from kgateway.groups.rows import Row
from kgateway.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

V = TypeVar("V")

FIRST_EPOCH = Epoch(INITIAL_EPOCH, 0)
FIRST_TARGETS = Targets(INITIAL_EPOCH, 0)


class GroupState:
    """
    A group as of its rows.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch: Epoch | None = None
        self.targets_made: Targets | None = None
        self.profiles: dict[str, Profile] = {}  # by member id, as all of these
        self.progress: dict[str, Progress] = {}
        self.targets: dict[str, Assignment] = {}
        self.matches: dict[str, Matches] = {}  # by regular expression
        self.has_old_topics = False
        self.static: dict[str, str] = {}  # member id by instance id
        self.assignors: Counter[str] = Counter()
        self.patterns: Counter[str] = Counter()
        self.classic_protocols: Counter[str] = Counter()  # of members of the classic protocol
        self.classic_count = 0
        self._topic_names: Counter[str] = Counter()
        self._owners: dict[Uuid, dict[int, str]] = {}

    @property
    def epoch_now(self) -> Epoch:
        return self.epoch or FIRST_EPOCH

    @property
    def targets_now(self) -> Targets:
        return self.targets_made or FIRST_TARGETS

    def progress_of(self, member_id: str) -> Progress:
        return self.progress.get(member_id, NEW)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def is_free_for(self, member_id: str) -> Callable[[Uuid, int], bool]:
        """
        Tells whether no other member owns a partition.
        """
        owners, nobody = self._owners, dict[int, str]()
        return lambda topic_id, index: owners.get(topic_id, nobody).get(index, member_id) == member_id

    def reads(self, topic: str) -> bool:
        """
        Whether a member subscribes to it.
        """
        return topic in self._topic_names or any(topic in found.topics for found in self.matches.values())

    def topics_read(self) -> frozenset[str]:
        """
        All that members subscribe to.
        """
        return frozenset(self._topic_names).union(*(found.topics for found in self.matches.values()))

    def topics_read_by(self, profile: Profile) -> frozenset[str]:
        """
        The topics that a member subscribes to, by name and by expression.
        """
        matched = self.matches.get(profile.pattern) if profile.pattern else None
        return profile.topic_names | matched.topics if matched else profile.topic_names

    def set_epoch(self, epoch: Epoch | None) -> None:
        self.epoch = epoch

    def set_targets_made(self, made: Targets | None) -> None:
        self.targets_made = made

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        _put(self.targets, member_id, target)

    def set_matches(self, pattern: str, found: Matches | None) -> None:
        _put(self.matches, pattern, found)

    def sweep(self) -> None:
        """
        After a replay: what is of no member is nothing.
        """
        for member_id in self.progress.keys() - self.profiles.keys():
            self.set_progress(member_id, None)
        for member_id in self.targets.keys() - self.profiles.keys():
            self.set_target(member_id, None)

    def set_old_topics(self, there: bool) -> None:
        self.has_old_topics = there

    def set_profile(self, member_id: str, profile: Profile | None) -> None:
        before = self.profiles.get(member_id)
        if before:
            self._count(before, -1)
            if before.instance_id is not None and self.static.get(before.instance_id) == member_id:
                del self.static[before.instance_id]
        _put(self.profiles, member_id, profile)
        if profile:
            self._count(profile, 1)
            if profile.instance_id is not None:
                self.static[profile.instance_id] = member_id

    def set_progress(self, member_id: str, progress: Progress | None) -> None:
        before = self.progress.get(member_id)
        if before:
            self._disown(member_id, before.assigned)
            self._disown(member_id, before.revoking)
        _put(self.progress, member_id, progress)
        if progress:
            self._own(member_id, progress.assigned)
            self._own(member_id, progress.revoking)

    def set_step(self, member_id: str, progress: Progress) -> None:
        """
        The member owns what it did, in another epoch; no row says so (unwritten.py).
        """
        self.progress[member_id] = progress

    def replay(self, row: Row) -> None:
        """
        What this row says is so now.
        """
        replay = _REPLAYED.get(type(row.key))
        if replay:
            replay(self, row.key, row.value)

    def rows(self) -> Iterator[Row]:
        """
        Rows that make it again; their keys in reverse are those of a group that goes.
        """
        group_id = self.group_id
        yield epoch_row(group_id, self.epoch_now)
        yield from (matches_row(group_id, pattern, found) for pattern, found in self.matches.items())
        yield from (profile_row(group_id, member_id, profile) for member_id, profile in self.profiles.items())
        yield targets_row(group_id, self.targets_now)
        yield from (target_row(group_id, member_id, target) for member_id, target in self.targets.items())
        yield from (progress_row(group_id, member_id, progress) for member_id, progress in self.progress.items())

    def tombstones(self) -> list[Row]:
        """
        Rows by which nothing of it is left.
        """
        gone = [Row(row.key, None) for row in self.rows()][::-1]
        return [old_topics_row(self.group_id), *gone] if self.has_old_topics else gone

    def _count(self, profile: Profile, one: int) -> None:
        _add(self._topic_names, profile.topic_names, one)
        _add(self.patterns, [profile.pattern] if profile.pattern else [], one)
        _add(self.assignors, [profile.assignor] if profile.assignor else [], one)
        if profile.classic:
            self.classic_count += one
            _add(self.classic_protocols, [protocol.name for protocol in profile.classic.protocols], one)

    def _own(self, member_id: str, owned: Owned) -> None:
        for topic_id, partitions in owned.items():
            self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, member_id: str, owned: Owned) -> None:
        """
        Of rows that are replayed, those of the next owner may come before those of the one before.
        """
        for topic_id, partitions in owned.items():
            owners = self._owners.get(topic_id, {})
            for index in partitions:
                if owners.get(index) == member_id:
                    del owners[index]
            if not owners:
                self._owners.pop(topic_id, None)


def _put(place: dict[str, V], name: str, value: V | None) -> None:
    if value is None:
        place.pop(name, None)
    else:
        place[name] = value


def _add(counter: Counter[str], names: Iterable[str], one: int) -> None:
    for name in names:
        counter[name] += one
        if not counter[name]:
            del counter[name]


def _read(parse: Callable[[Any], V], value: Any) -> V | None:
    return None if value is None else parse(value)


# Kind of row -> what it says of the state.
_REPLAYED: dict[type[Message], Callable[[GroupState, Any, Any], None]] = {
    ConsumerGroupMetadataKey: lambda state, _, value: state.set_epoch(_read(epoch_from, value)),
    ConsumerGroupPartitionMetadataKey: lambda state, _, value: state.set_old_topics(value is not None),
    ConsumerGroupMemberMetadataKey: lambda state, key, value: state.set_profile(
        key.member_id, _read(profile_from, value)
    ),
    ConsumerGroupTargetAssignmentMetadataKey: lambda state, _, value: state.set_targets_made(
        _read(targets_from, value)
    ),
    ConsumerGroupTargetAssignmentMemberKey: lambda state, key, value: state.set_target(
        key.member_id, _read(target_from, value)
    ),
    ConsumerGroupCurrentMemberAssignmentKey: lambda state, key, value: state.set_progress(
        key.member_id, _read(progress_from, value)
    ),
    ConsumerGroupRegularExpressionKey: lambda state, key, value: state.set_matches(
        key.regular_expression, _read(matches_from, value)
    ),
}
