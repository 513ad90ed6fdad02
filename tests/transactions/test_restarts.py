"""
Transactions over the log on disk: decisions survive a restart, however the process ended.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from kgateway.security.permissions import Resource
from kgateway.transactions.records import encoded
from kgateway.transactions.state import TransactionState
from tests.broker.log.log_world import LogWorld
from tests.transactions.transaction_world import T0, T1, TransactionWorld, transaction

pytestmark = pytest.mark.usefixtures("power_goes")

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])


class OnDisk(TransactionWorld):
    """
    A coordinator over a broker with a data folder.
    """

    def __init__(self, path: Path) -> None:
        self.world = LogWorld(path)
        super().__init__(lambda _: self.world.broker)

    def restart(self, again: Callable[[LogWorld], None]) -> None:
        """
        End the process and start another one.
        """
        self.parts.stop()
        again(self.world)
        self.broker = self.world.broker
        self.clock = Clock()
        self.start()
        self.clock.pump([0] * 100)


@EITHER
def test_transactions_survive_a_restart(tmp_path: Path, again: Callable[[LogWorld], None]) -> None:
    """
    An open one continues, and a committed one is still committed.
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
def test_missing_markers_are_written_after_a_restart(tmp_path: Path, again: Callable[[LogWorld], None]) -> None:
    world = OnDisk(tmp_path)
    decided = transaction(state=TransactionState.PREPARE_ABORT, partitions=frozenset({T0, T1}))
    log: Any = world.broker.coordinator(Resource.TRANSACTIONAL_ID, "a")
    log.append([encoded(decided)])
    assert world.markers(T0) == []
    world.restart(again)
    assert [told[:3] for told in world.markers(T0) + world.markers(T1)] == [(7, 3, False)] * 2
    assert world.state() == "CompleteAbort"
