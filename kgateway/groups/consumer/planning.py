"""
What a group as a whole is to do next: which topics its members read, in which epoch it is, who is to read what.

Each heartbeat asks; most find that nothing has changed, at the cost of a comparison. Views are immutable: only a new
one can bring other topics.
"""

from collections.abc import Callable
from hashlib import blake2b

from twisted.logger import Logger

from kgateway.cluster.view import ClusterView, Topic
from kgateway.coordinating.patterns import MayDescribe, matching
from kgateway.groups.consumer.assignors.catalogue import ASSIGNORS
from kgateway.groups.consumer.assignors.subscriber import Subscriber
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.draft import Draft
from kgateway.groups.consumer.member import Profile
from kgateway.groups.consumer.rows import Epoch, Matches, Targets
from kgateway.groups.consumer.state import GroupState
from kgateway.wire.uuids import Uuid


class Planning:
    """
    Compares a group with the cluster.
    """

    _log = Logger()

    def __init__(self, state: GroupState, view: Callable[[], ClusterView], now_ms: Callable[[], int]) -> None:
        self._state = state
        self._view = view
        self._now_ms = now_ms
        self._seen: ClusterView | None = None  # with which the epoch and the matches were compared last

    def forget(self) -> None:
        """
        What was seen may have been undone: compare everything anew.
        """
        self._seen = None

    def refresh(
        self, draft: Draft, config: GroupConfig, may_describe: MayDescribe | None, *, resubscribed: bool
    ) -> None:
        """
        Bring matches, epoch and targets to where they should be by now. Matches wait for a member that may be asked
        what it may know.
        """
        view, has_patterns = self._view(), bool(self._state.patterns)
        matched = False
        if has_patterns and may_describe:
            matched = self._refresh_matches(draft, view, config, may_describe)
        if resubscribed or matched or view is not self._seen:
            self.refresh_epoch(draft, always=resubscribed)
        if may_describe or not has_patterns:
            self._seen = view
        if self._may_make_targets(config):
            self._make_targets(draft, config)

    def refresh_epoch(self, draft: Draft, *, always: bool) -> None:
        """
        Begin a new epoch if the topics are not what they were, or in any case.
        """
        before, topics_hash = self._state.epoch_now, self._hash(self._state.topics_read())
        if always or topics_hash != before.metadata_hash:
            draft.set_epoch(Epoch(before.number + 1, topics_hash))
            self._log.info("group {group}: epoch {epoch} begins", group=self._state.group_id, epoch=before.number + 1)

    def topic_ids(self, profile: Profile) -> frozenset[Uuid]:
        """
        Of the topics that a member subscribes to, those that are there.
        """
        topics = self._view().topics
        return frozenset(topics[name].id for name in self._state.topics_read_by(profile) if name in topics)

    def assignor(self, config: GroupConfig) -> str:
        """
        The one that most members ask for.
        """
        asked = self._state.assignors
        return min(asked, key=lambda name: (-asked[name], name)) if asked else config.assignors[0]

    def _refresh_matches(self, draft: Draft, view: ClusterView, config: GroupConfig, may_describe: MayDescribe) -> bool:
        """
        Whether expressions match other topics by now. Where only the view is new, only new topics are looked at.
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
            draft.set_matches(pattern, Matches(found, view.epoch, now_ms))
        return changed

    def _may_make_targets(self, config: GroupConfig) -> bool:
        made, now_ms = self._state.targets_now, self._now_ms()
        if self._state.epoch_now.number <= made.epoch:
            return False
        waited = now_ms - made.made_ms
        return not 0 <= waited < config.assignment_interval_ms

    def _make_targets(self, draft: Draft, config: GroupConfig) -> None:
        state, assignor = self._state, self.assignor(config)
        members = self._subscribers()
        topics = self._view().topics_by_id
        counts = {
            topic_id: len(topics[topic_id].partitions)
            for subscribed in {member.topics for member in members.values()}
            for topic_id in subscribed
        }
        for member_id, target in ASSIGNORS[assignor](members, counts).items():
            draft.set_target(member_id, target)
        epoch = state.epoch_now.number
        draft.set_targets_made(Targets(epoch, self._now_ms()))
        self._log.info(
            "group {group}: target of epoch {epoch} for {members} members, by {assignor}",
            group=state.group_id,
            epoch=epoch,
            members=len(members),
            assignor=assignor,
        )

    def _subscribers(self) -> dict[str, Subscriber]:
        """
        All members as assignors see them. Most subscribe to what others subscribe to.
        """
        state = self._state
        ids: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}
        found = {}
        for member_id, profile in state.profiles.items():
            said = profile.topic_names, profile.pattern
            if said not in ids:
                ids[said] = self.topic_ids(profile)
            found[member_id] = Subscriber(ids[said], state.target_of(member_id), profile.instance_id)
        return found

    def _hash(self, names: frozenset[str]) -> int:
        """
        Tells whether the topics are the same, with the same partitions; it means nothing else.
        """
        topics = self._view().topics
        there = [topics[name] for name in sorted(names) if name in topics]
        if not there:
            return 0
        digest = blake2b(digest_size=8)
        for topic in there:
            digest.update(_said(topic))
        return int.from_bytes(digest.digest(), "big", signed=True)


def _said(topic: Topic) -> bytes:
    return topic.id + topic.name.encode() + b"\0" + str(len(topic.partitions)).encode() + b"\0"
