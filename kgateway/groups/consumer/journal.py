"""
Changes of a consumer group, and the journal that writes them.

A change is made in the state at once, so that each step sees those before it. It is undone if it cannot be written.
Answers wait until all changes that they may depend on are committed. If a write fails after it was begun, the change is
undone with all that followed it, which saw its effects.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.groups.assignors.assignment import Assignment
from kgateway.groups.consumer import records
from kgateway.groups.consumer.member import Profile, Progress
from kgateway.groups.consumer.records import Epoch, Matches, TargetMetadata
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.records import Row, Write
from kgateway.log_messages import GROUP_CHANGE_NOT_WRITTEN
from kgateway.wire.errors import ErrorCode, KafkaError

A = TypeVar("A")


class ChangeSet:
    def __init__(self, state: ConsumerGroupState) -> None:
        self.rows: list[Row] = []
        self.state = state
        self._undo: list[Callable[[], None]] = []

    def undo(self) -> None:
        """
        Restore the state. Of several change sets, the last one is undone first.
        """
        while self._undo:
            self._undo.pop()()

    def set_epoch(self, epoch: Epoch) -> None:
        state = self.state
        self._add(partial(state.set_epoch, state.epoch), records.epoch_row(state.group_id, epoch))
        state.set_epoch(epoch)
        if state.has_old_topics:
            self._add(partial(state.set_old_topics, True), records.old_topics_row(state.group_id))
            state.set_old_topics(False)

    def set_target_metadata(self, metadata: TargetMetadata) -> None:
        state = self.state
        self._add(
            partial(state.set_target_metadata, state.target_metadata),
            records.target_metadata_row(state.group_id, metadata),
        )
        state.set_target_metadata(metadata)

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        state = self.state
        before = state.targets.get(member_id)
        if before != target:
            self._add(
                partial(state.set_target, member_id, before), records.target_row(state.group_id, member_id, target)
            )
            state.set_target(member_id, target)

    def set_matches(self, pattern: str, found: Matches | None) -> None:
        state = self.state
        before = state.matches.get(pattern)
        if before != found:
            self._add(partial(state.set_matches, pattern, before), records.matches_row(state.group_id, pattern, found))
            state.set_matches(pattern, found)

    def set_profile(self, member_id: str, profile: Profile | None) -> None:
        state = self.state
        before = state.profiles.get(member_id)
        if before != profile:
            self._add(
                partial(state.set_profile, member_id, before), records.profile_row(state.group_id, member_id, profile)
            )
            state.set_profile(member_id, profile)
            if profile and profile.classic and before and before.classic is None:
                self._write_epoch(member_id)

    def set_progress(self, member_id: str, progress: Progress | None) -> None:
        state = self.state
        before = state.progress.get(member_id)
        if before != progress:
            self._add(
                partial(state.set_progress, member_id, before),
                records.progress_row(state.group_id, member_id, progress),
            )
            state.set_progress(member_id, progress)

    def set_unwritten(self, member_id: str, progress: Progress) -> None:
        """
        Put a member into another epoch, with what it owned, and write nothing of it (reconciliation.py).
        """
        state = self.state
        self._undo.append(partial(state.set_unwritten, member_id, state.progress[member_id]))
        state.set_unwritten(member_id, progress)

    def drop_member(self, member_id: str) -> None:
        """
        Delete all of a member, in the order in which Kafka can replay it.
        """
        self.set_progress(member_id, None)
        self.set_target(member_id, None)
        self.set_profile(member_id, None)

    def absorb(self, later: "ChangeSet") -> None:
        """
        Undo a later change, which has nothing to write, together with this one.
        """
        self._undo += later._undo

    def _write_epoch(self, member_id: str) -> None:
        """
        Write the epoch of a member that will speak the classic protocol: its last step may be unwritten.
        """
        if member_id in self.state.progress:
            self.rows.append(records.progress_row(self.state.group_id, member_id, self.state.progress[member_id]))

    def _add(self, undo: Callable[[], None], row: Row) -> None:
        self._undo.append(undo)
        self.rows.append(row)


class _Pending:
    def __init__(self, change: ChangeSet) -> None:
        self.change = change
        self._waiting: list[Deferred[None]] = []

    def wait(self) -> Deferred[None]:
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    def end(self, error: KafkaError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(None) if error is None else each.errback(error)


class ChangeJournal:
    _log = Logger()

    def __init__(self, write: Write, undone: Callable[[], None]) -> None:
        self._write = write
        self._undone = undone  # called after an undo
        self._pending: deque[_Pending] = deque()

    def commit(self, change: ChangeSet, answer: A) -> A | Deferred[A]:
        """
        Write the change. Returns the answer, or a Deferred of it until the change and all before it are committed.
        Raises a KafkaError if it cannot be written; the caller then undoes it.
        """
        if change.rows:
            self._begin(change)
        elif self._pending:
            self._pending[-1].change.absorb(change)
        if not self._pending:
            return answer
        return self._pending[-1].wait().addCallback(lambda _: answer)

    def stop(self, error: KafkaError) -> None:
        """
        Fail all answers that wait. Their writes may be committed or not: a later load of the group will show it.
        """
        pending, self._pending = self._pending, deque()
        for each in pending:
            each.end(error)

    def _begin(self, change: ChangeSet) -> None:
        written = self._write(change.rows)
        change.rows = []
        if written is None:
            return
        pending = _Pending(change)
        self._pending.append(pending)
        outcome: list[KafkaError] = []  # set if the write fails at once
        written.addCallbacks(
            self._committed, lambda failure: outcome.append(self._failed(pending, failure)), (pending,)
        )
        if outcome:
            raise outcome[0]

    def _committed(self, _: None, pending: _Pending) -> None:
        while pending in self._pending:
            self._pending.popleft().end(None)

    def _failed(self, pending: _Pending, failure: Failure) -> KafkaError:
        error = _kafka_error(failure)
        self._log.warn(GROUP_CHANGE_NOT_WRITTEN, error=error)
        undone: list[_Pending] = []
        while pending in self._pending:
            last = self._pending.pop()
            last.change.undo()
            undone.append(last)
        if undone:
            self._undone()
        for last in reversed(undone):
            last.end(error)
        return error


def _kafka_error(failure: Failure) -> KafkaError:
    if isinstance(failure.value, KafkaError):
        return failure.value
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the write failed: {failure.value}")
