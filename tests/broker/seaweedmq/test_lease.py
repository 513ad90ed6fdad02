"""
A gateway that waits for the lease, by a clock that the test sets, with a lock and a chain in memory.
"""

from collections.abc import Callable
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.seaweed.chain.chain import Chain
from kgateway.broker.seaweed.lock import FilerLock
from kgateway.broker.seaweedmq.leadership.lease import LeaderLease

ASK_S = 0.5


class OthersLock:
    """
    A lock that another process has.
    """

    holder = "other"
    waits_s = 6.0

    def __init__(self) -> None:
        self.holder_has_ended = False
        self.is_free = False
        self.asked = 0

    async def take(self) -> bool:
        self.asked += 1
        return self.is_free


class EmptyChain:
    async def catch_up(self, _: Callable[[Any], None]) -> None:
        pass

    async def append(self, _: bytes) -> int:
        return 0


class World:
    def __init__(self) -> None:
        self.clock, self.lock = Clock(), OthersLock()
        lock, chain = cast("FilerLock", self.lock), cast("Chain", EmptyChain())
        self.lease = LeaderLease(lock, chain, "own", 1, self.clock, lambda _: None, lambda: None)
        self.taken: Deferred[Any] = Deferred.fromCoroutine(self.lease.take())


@pytest.fixture
def world() -> World:
    return World()


def test_the_lock_is_asked_for_again_and_again(world: World) -> None:
    world.clock.pump([ASK_S] * 10)
    assert world.lock.asked == 1 + 10
    assert not world.taken.called


def test_it_is_asked_for_when_it_expires(world: World) -> None:
    world.lock.waits_s = 0.25
    world.lock.is_free = True
    world.clock.pump([ASK_S, 0.25])
    assert world.taken.called


def test_it_is_taken_as_soon_as_its_holder_has_ended(world: World) -> None:
    """
    The gateway looks for the process more often than it asks the filer.
    """
    world.clock.pump([0.05] * 2)
    world.lock.holder_has_ended = world.lock.is_free = True
    world.clock.pump([0.05] * 2)
    assert world.taken.called
    assert world.lock.asked == 2
