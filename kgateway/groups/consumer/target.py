"""
What a consumer group does as a whole: which topics its members read, its epoch, and the target assignment.

Every heartbeat asks for it. Most find that nothing has changed, at the cost of a comparison. Views are immutable: only
a new one can bring other topics.
"""

from collections.abc import Callable
from hashlib import blake2b

from twisted.logger import Logger

from kgateway.cluster.view import ClusterView, Topic
from kgateway.coordination.topic_patterns import MayDescribe, matching
from kgateway.groups.assignors.assignment import Assignor, Subscriber
from kgateway.groups.assignors.range import assign_ranges
from kgateway.groups.assignors.uniform import assign_uniformly
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.journal import ChangeSet
from kgateway.groups.consumer.member import Profile
from kgateway.groups.consumer.records import Epoch, Matches, TargetMetadata
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.plurals import counted
from kgateway.wire.uuids import Uuid

# By the names that members and settings use.
ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}


class TargetPlanner:
    _log = Logger()

    def __init__(self, state: ConsumerGroupState, view: Callable[[], ClusterView], now_ms: Callable[[], int]) -> None:
        self._state = state
        self._view = view
        self._now_ms = now_ms
        self._seen: ClusterView | None = None  # the view of the last comparison

    def forget(self) -> None:
        """
        Compare everything again: what was seen may be undone.
        """
        self._seen = None

    def refresh(
        self, changes: ChangeSet, config: GroupConfig, may_describe: MayDescribe | None, *, resubscribed: bool
    ) -> None:
        """
        Bring matches, epoch and targets up to date. Matches wait for a member whose permissions can be asked.
        """
        view, has_patterns = self._view(), bool(self._state.patterns)
        matched = False
        if has_patterns and may_describe:
            matched = self._refresh_matches(changes, view, config, may_describe)
        if resubscribed or matched or view is not self._seen:
            self.refresh_epoch(changes, always=resubscribed)
        if may_describe or not has_patterns:
            self._seen = view
        if self._may_make_targets(config):
            self._make_targets(changes, config)

    def refresh_epoch(self, changes: ChangeSet, *, always: bool) -> None:
        """
        Begin a new epoch if the topics have changed, or in any case with `always`.
        """
        before, topics_hash = self._state.epoch_now, self._metadata_hash(self._state.topics_read())
        if always or topics_hash != before.metadata_hash:
            changes.set_epoch(Epoch(before.number + 1, topics_hash))
            self._log.info("group {group}: epoch {epoch} begins", group=self._state.group_id, epoch=before.number + 1)

    def topic_ids(self, profile: Profile) -> frozenset[Uuid]:
        """
        The topics that a member subscribes to, as far as they exist.
        """
        topics = self._view().topics
        return frozenset(topics[name].id for name in self._state.topics_read_by(profile) if name in topics)

    def assignor(self, config: GroupConfig) -> str:
        """
        The assignor that most members ask for.
        """
        asked = self._state.assignors
        return min(asked, key=lambda name: (-asked[name], name)) if asked else config.assignors[0]

    def _refresh_matches(
        self, changes: ChangeSet, view: ClusterView, config: GroupConfig, may_describe: MayDescribe
    ) -> bool:
        """
        Look up which topics expressions match. Returns whether any of them matches other topics now. If only the view
        is new, only new topics are looked at.
        """
        state, seen, now_ms, changed = self._state, self._seen, self._now_ms(), False
        for pattern in list(state.patterns):
            before = state.matches.get(pattern)
            stale = before is not None and now_ms >= before.made_ms + config.pattern_refresh_ms
            if before is None or seen is None or stale:
                found = matching(pattern, view.topics, may_describe)
            elif view is not seen:
                kept = before.topics & view.topics.keys()
                found = kept | matching(pattern, view.topics.keys() - seen.topics.keys(), may_describe)
            else:
                continue
            if before is None or found != before.topics:
                changed = True
            elif not stale:
                continue
            changes.set_matches(pattern, Matches(found, view.epoch, now_ms))
        return changed

    def _may_make_targets(self, config: GroupConfig) -> bool:
        metadata = self._state.target_metadata_now
        if self._state.epoch_now.number <= metadata.epoch:
            return False
        waited = self._now_ms() - metadata.made_ms
        return not 0 <= waited < config.assignment_interval_ms

    def _make_targets(self, changes: ChangeSet, config: GroupConfig) -> None:
        state, assignor = self._state, self.assignor(config)
        members = self._subscribers()
        topics = self._view().topics_by_id
        counts = {
            topic_id: len(topics[topic_id].partitions)
            for subscribed in {member.topics for member in members.values()}
            for topic_id in subscribed
        }
        for member_id, target in ASSIGNORS[assignor](members, counts).items():
            changes.set_target(member_id, target)
        epoch = state.epoch_now.number
        changes.set_target_metadata(TargetMetadata(epoch, self._now_ms()))
        self._log.info(
            "group {group}: target of epoch {epoch} for {members}, by {assignor}",
            group=state.group_id,
            epoch=epoch,
            members=counted(len(members), "member"),
            assignor=assignor,
        )

    def _subscribers(self) -> dict[str, Subscriber]:
        """
        All members as assignors see them. Most have the same subscription.
        """
        state = self._state
        ids: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}
        found = {}
        for member_id, profile in state.profiles.items():
            subscription = profile.topic_names, profile.pattern
            if subscription not in ids:
                ids[subscription] = self.topic_ids(profile)
            found[member_id] = Subscriber(ids[subscription], state.target_of(member_id), profile.instance_id)
        return found

    def _metadata_hash(self, names: frozenset[str]) -> int:
        topics = self._view().topics
        there = [topics[name] for name in sorted(names) if name in topics]
        if not there:
            return 0
        digest = blake2b(digest_size=8)
        for topic in there:
            digest.update(_topic_bytes(topic))
        return int.from_bytes(digest.digest(), "big", signed=True)


def _topic_bytes(topic: Topic) -> bytes:
    return topic.id + topic.name.encode() + b"\0" + str(len(topic.partitions)).encode() + b"\0"
