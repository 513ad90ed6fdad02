"""
A change of a consumer group that is not written yet.

It is made in the state at once, so that each step sees those before it; where it cannot be written, it is undone.
"""

from collections.abc import Callable
from functools import partial

from kgateway.groups.consumer.assignment import Assignment
from kgateway.groups.consumer.member import Profile, Progress
from kgateway.groups.consumer.rows import (
    Epoch,
    Matches,
    Targets,
    epoch_row,
    matches_row,
    old_topics_row,
    profile_row,
    progress_row,
    target_row,
    targets_row,
)
from kgateway.groups.consumer.state import GroupState
from kgateway.groups.rows import Row


class Draft:
    """
    The rows of a change, and how to undo it.
    """

    def __init__(self, state: GroupState) -> None:
        self.rows: list[Row] = []
        self.state = state
        self._undo: list[Callable[[], None]] = []

    def undo(self) -> None:
        """
        Make the state what it was. Of several changes, the last one is undone first.
        """
        while self._undo:
            self._undo.pop()()

    def set_epoch(self, epoch: Epoch) -> None:
        state = self.state
        self._add(partial(state.set_epoch, state.epoch), epoch_row(state.group_id, epoch))
        state.set_epoch(epoch)
        if state.has_old_topics:
            self._add(partial(state.set_old_topics, True), old_topics_row(state.group_id))
            state.set_old_topics(False)

    def set_targets_made(self, made: Targets) -> None:
        state = self.state
        self._add(partial(state.set_targets_made, state.targets_made), targets_row(state.group_id, made))
        state.set_targets_made(made)

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        state = self.state
        before = state.targets.get(member_id)
        if before != target:
            self._add(partial(state.set_target, member_id, before), target_row(state.group_id, member_id, target))
            state.set_target(member_id, target)

    def set_matches(self, pattern: str, found: Matches | None) -> None:
        state = self.state
        before = state.matches.get(pattern)
        if before != found:
            self._add(partial(state.set_matches, pattern, before), matches_row(state.group_id, pattern, found))
            state.set_matches(pattern, found)

    def set_profile(self, member_id: str, profile: Profile | None) -> None:
        state = self.state
        before = state.profiles.get(member_id)
        if before != profile:
            self._add(partial(state.set_profile, member_id, before), profile_row(state.group_id, member_id, profile))
            state.set_profile(member_id, profile)
            if profile and profile.classic and before and before.classic is None:
                self._tell_epoch(member_id)

    def set_progress(self, member_id: str, progress: Progress | None) -> None:
        state = self.state
        before = state.progress.get(member_id)
        if before != progress:
            self._add(partial(state.set_progress, member_id, before), progress_row(state.group_id, member_id, progress))
            state.set_progress(member_id, progress)

    def set_step(self, member_id: str, progress: Progress) -> None:
        """
        Let a member that owns what it did be in another epoch, and write nothing of it (unwritten.py).
        """
        state = self.state
        self._undo.append(partial(state.set_step, member_id, state.progress[member_id]))
        state.set_step(member_id, progress)

    def drop_member(self, member_id: str) -> None:
        """
        Forget all of a member, in the order in which Kafka can replay it.
        """
        self.set_progress(member_id, None)
        self.set_target(member_id, None)
        self.set_profile(member_id, None)

    def take_in(self, later: "Draft") -> None:
        """
        Undo with this one what was changed after it, of which there is nothing to be written.
        """
        self._undo += later._undo

    def _tell_epoch(self, member_id: str) -> None:
        """
        Write in which epoch a member is that will speak the classic protocol: its last step may be unwritten.
        """
        if member_id in self.state.progress:
            self.rows.append(progress_row(self.state.group_id, member_id, self.state.progress[member_id]))

    def _add(self, undo: Callable[[], None], row: Row) -> None:
        self._undo.append(undo)
        self.rows.append(row)
