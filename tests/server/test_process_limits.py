"""
What a process has of its own.
"""

import gc
from collections.abc import Iterator

import pytest

from kgateway.server.process_limits import seldom_look_for_cycles


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """
    The process of the tests is another.
    """
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_a_wave_of_requests_is_not_looked_through_for_cycles() -> None:
    """
    As many objects as a thousand members that wait for each other are made, without a look at what was there before.
    """
    seldom_look_for_cycles()
    assert gc.get_freeze_count()
    before = [generation["collections"] for generation in gc.get_stats()]
    waiting = [[number] for number in range(50_000)]
    looks = [generation["collections"] - count for generation, count in zip(gc.get_stats(), before, strict=True)]
    assert len(waiting) == 50_000
    assert (looks[0] <= 5, looks[1:]) == (True, [0, 0])


def test_cycles_go_in_the_end() -> None:
    """
    Nobody has to ask for it.
    """
    seldom_look_for_cycles()
    before = gc.get_stats()[0]["collected"]
    for _ in range(20_000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collected"] > before
