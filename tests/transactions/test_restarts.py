"""
Transactions over the log on disk: what was decided is there after a restart, however the process ended.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from kgateway.security.permissions import Resource
from kgateway.transactions.coding import encoded
from kgateway.transactions.state import State
from tests.broker.log.log_world import LogWorld
from tests.transactions.transacting import T0, T1, Transacting, transaction

pytestmark = pytest.mark.usefixtures("power_goes")

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])


class OnDisk(Transacting):
    """
    A coordinator over a broker with a folder.
    """

    def __init__(self, path: Path) -> None:
        self.world = LogWorld(path)
        super().__init__(lambda _: self.world.broker)

    def restart(self, again: Callable[[LogWorld], None]) -> None:
        """
        The process ends, and another one begins.
        """
        self.parts.stop()
        again(self.world)
        self.broker = self.world.broker
        self.clock = Clock()
        self.start()
        self.clock.pump([0] * 100)


@EITHER
def test_transactions_outlive_the_process(tmp_path: Path, again: Callable[[LogWorld], None]) -> None:
    """
    An open transaction goes on, and one that was committed stays so.
    """
    world = OnDisk(tmp_path)
    me = world.init()
    world.add(me, [T0])
    world.restart(again)
    world.add(me, [T1])
    after = world.end(me, True)
    world.restart(again)
    assert world.end(me, True) == after
    assert world.state() == "CompleteCommit"
    told = [(producer_id, epoch, commits) for producer_id, epoch, commits, _ in world.markers(T0) + world.markers(T1)]
    assert told == [(*after, True)] * 2
    assert world.init(name="b").producer_id != me.producer_id


@EITHER
def test_what_was_decided_is_told_after_a_restart(tmp_path: Path, again: Callable[[LogWorld], None]) -> None:
    """
    To the partitions that had not heard of it.
    """
    world = OnDisk(tmp_path)
    decided = transaction(state=State.PREPARE_ABORT, places=frozenset({T0, T1}))
    log: Any = world.broker.coordinator(Resource.TRANSACTIONAL_ID, "a")
    log.append([encoded(decided)])
    assert world.markers(T0) == []
    world.restart(again)
    assert [told[:3] for told in world.markers(T0) + world.markers(T1)] == [(7, 3, False)] * 2
    assert world.state() == "CompleteAbort"
