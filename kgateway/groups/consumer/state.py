"""
The state of a consumer group as its rows say, and look-ups in it.

Each `set_` applies a row; a group is restored by a replay of its rows. Progress without a profile belongs to no member:
it exists only while rows are replayed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kgateway.groups.assignors.assignment import NOTHING, Assignment, Owned
from kgateway.groups.consumer import records
from kgateway.groups.consumer.member import INITIAL_EPOCH, NEW, Profile, Progress
from kgateway.groups.consumer.records import Epoch, Matches, TargetMetadata
from kgateway.groups.records import Row
from kgateway.messages.stored import consumer_group as stored
from kgateway.wire.uuids import Uuid

V = TypeVar("V")

FIRST_EPOCH = Epoch(INITIAL_EPOCH, 0)
FIRST_TARGETS = TargetMetadata(INITIAL_EPOCH, 0)


class ConsumerGroupState:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch: Epoch | None = None
        self.target_metadata: TargetMetadata | None = None
        self.profiles: dict[str, Profile] = {}  # by member id, as the next two
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
    def target_metadata_now(self) -> TargetMetadata:
        return self.target_metadata or FIRST_TARGETS

    def progress_of(self, member_id: str) -> Progress:
        return self.progress.get(member_id, NEW)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def is_free_for(self, member_id: str) -> Callable[[Uuid, int], bool]:
        """
        A function that tells whether no other member owns a partition.
        """
        owners, nobody = self._owners, dict[int, str]()
        return lambda topic_id, index: owners.get(topic_id, nobody).get(index, member_id) == member_id

    def reads(self, topic: str) -> bool:
        return topic in self._topic_names or any(topic in found.topics for found in self.matches.values())

    def topics_read(self) -> frozenset[str]:
        return frozenset(self._topic_names).union(*(found.topics for found in self.matches.values()))

    def topics_read_by(self, profile: Profile) -> frozenset[str]:
        """
        The topics that a member subscribes to, by name and by regular expression.
        """
        matched = self.matches.get(profile.pattern) if profile.pattern else None
        return profile.topic_names | matched.topics if matched else profile.topic_names

    def set_epoch(self, epoch: Epoch | None) -> None:
        self.epoch = epoch

    def set_target_metadata(self, made: TargetMetadata | None) -> None:
        self.target_metadata = made

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        _put(self.targets, member_id, target)

    def set_matches(self, pattern: str, found: Matches | None) -> None:
        _put(self.matches, pattern, found)

    def sweep(self) -> None:
        """
        Drop what belongs to no member, after a replay.
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

    def set_unwritten(self, member_id: str, progress: Progress) -> None:
        """
        Put the member into another epoch, with what it owned. No row says so (reconciliation.py).
        """
        self.progress[member_id] = progress

    def replay(self, row: Row) -> None:
        key, value = row
        match key:
            case stored.ConsumerGroupMetadataKey():
                self.set_epoch(_read(records.epoch_from, value))
            case stored.ConsumerGroupPartitionMetadataKey():
                self.set_old_topics(value is not None)
            case stored.ConsumerGroupMemberMetadataKey():
                self.set_profile(key.member_id, _read(records.profile_from, value))
            case stored.ConsumerGroupTargetAssignmentMetadataKey():
                self.set_target_metadata(_read(records.target_metadata_from, value))
            case stored.ConsumerGroupTargetAssignmentMemberKey():
                self.set_target(key.member_id, _read(records.target_from, value))
            case stored.ConsumerGroupCurrentMemberAssignmentKey():
                self.set_progress(key.member_id, _read(records.progress_from, value))
            case stored.ConsumerGroupRegularExpressionKey():
                self.set_matches(key.regular_expression, _read(records.matches_from, value))

    def rows(self) -> Iterator[Row]:
        """
        Rows that restore the group. Their keys in reverse are the tombstones of a group that is deleted.
        """
        group_id = self.group_id
        yield records.epoch_row(group_id, self.epoch_now)
        yield from (records.matches_row(group_id, pattern, found) for pattern, found in self.matches.items())
        yield from (records.profile_row(group_id, member_id, profile) for member_id, profile in self.profiles.items())
        yield records.target_metadata_row(group_id, self.target_metadata_now)
        yield from (records.target_row(group_id, member_id, target) for member_id, target in self.targets.items())
        yield from (
            records.progress_row(group_id, member_id, progress) for member_id, progress in self.progress.items()
        )

    def tombstones(self) -> list[Row]:
        gone = [Row(row.key, None) for row in self.rows()][::-1]
        return [records.old_topics_row(self.group_id), *gone] if self.has_old_topics else gone

    def _count(self, profile: Profile, change: int) -> None:
        _add(self._topic_names, profile.topic_names, change)
        _add(self.patterns, [profile.pattern] if profile.pattern else [], change)
        _add(self.assignors, [profile.assignor] if profile.assignor else [], change)
        if profile.classic:
            self.classic_count += change
            _add(self.classic_protocols, [protocol.name for protocol in profile.classic.protocols], change)

    def _own(self, member_id: str, owned: Owned) -> None:
        for topic_id, partitions in owned.items():
            self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, member_id: str, owned: Owned) -> None:
        """
        The member no longer owns these, unless another one does already: when rows are replayed, those of the next
        owner may come before those of the previous one.
        """
        for topic_id, partitions in owned.items():
            owners = self._owners.get(topic_id, {})
            for index in partitions:
                if owners.get(index) == member_id:
                    del owners[index]
            if not owners:
                self._owners.pop(topic_id, None)


def _put(values: dict[str, V], name: str, value: V | None) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _add(counter: Counter[str], names: Iterable[str], change: int) -> None:
    for name in names:
        counter[name] += change
        if not counter[name]:
            del counter[name]


def _read(parse: Callable[[Any], V], value: Any) -> V | None:
    return None if value is None else parse(value)
