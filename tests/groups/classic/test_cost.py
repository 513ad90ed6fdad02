"""
The cost of a large classic group, counted rather than timed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from kgateway.groups.classic.requests import JoinResult
from tests.groups.classic.clients import GroupTestCase

MANY, REBALANCES = 1_000, 50
_GROUPS = str(Path("kgateway", "groups"))


class CostTests(GroupTestCase):
    def rebalance(self, members: list[JoinResult]) -> list[JoinResult]:
        """
        Let all members rejoin, the leader first, and sync.
        """
        waiting = [self.join(each.member_id) for each in members]
        joined = [self.successResultOf(each) for each in waiting]
        self.sync_all(joined)
        return joined

    def test_rebalance_of_many_members(self) -> None:
        """
        In each rebalance only the leader gets the list of members, few timers are set, and one row is written.
        """
        timers = self.counting_timers()
        joined = self.stable(MANY)
        for _ in range(REBALANCES):
            before = len(timers), len(self.rows.written)
            joined = self.rebalance(joined)
            self.assertEqual(MANY, sum(len(each.members) for each in joined))
            self.assertEqual(1, len(self.rows.written) - before[1])
            self.assertLessEqual(len(timers) - before[0], 3)
            self.clock.advance(1)
        self.assertEqual((REBALANCES + 1, "Stable"), (self.group.generation, self.group.state))
        self.assertLessEqual(len(timers), 4 * MANY)

    def test_heartbeats_of_many_members(self) -> None:
        """
        Heartbeats set a timer for each member and session; the cost of one does not grow with the members.
        """
        joined = self.stable(MANY)
        timers = self.counting_timers()
        for _ in range(30):
            self.clock.advance(3)
            for each in joined:
                self.beat(each)
        self.assertLessEqual(len(timers), 3 * MANY)
        with counted() as steps:
            self.beat(joined[-1])
        self.assertLess(steps[0], 20)

    def test_cost_is_linear(self) -> None:
        """
        Joining and rebalancing four times the members costs four times the steps.
        """
        few, many = (self.steps(count) for count in (100, 400))
        self.assertLess(many, 4.4 * few)

    def steps(self, count: int) -> int:
        self.group = self.made()
        with counted() as steps:
            joined = self.stable(count)
            for _ in range(3):
                joined = self.rebalance(joined)
        return steps[0]

    def counting_timers(self) -> list[float]:
        set_for: list[float] = []
        call_later: Callable[..., Any] = self.clock.callLater

        def counting(delay: float, *arguments: Any, **more: Any) -> Any:
            set_for.append(delay)
            return call_later(delay, *arguments, **more)

        self.patch(self.clock, "callLater", counting)
        return set_for


@contextmanager
def counted() -> Iterator[list[int]]:
    """
    Counts calls of functions of the groups package, builtins called by them, and resumed generators.
    """
    steps = [0]

    def count(frame: FrameType, event: str, _: Any) -> None:
        steps[0] += event in ("call", "c_call") and _GROUPS in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        yield steps
    finally:
        sys.setprofile(None)
