"""
Garbage collection as the process configures it.
"""

import gc
from collections.abc import Iterator

import pytest

from kgateway.server.service import collect_cycles_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """
    Restores the settings of the test process.
    """
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_a_wave_of_requests_causes_no_full_collection() -> None:
    """
    As many objects as a thousand waiting members need are created without examining older ones.
    """
    collect_cycles_seldom()
    assert gc.get_freeze_count()
    before = [generation["collections"] for generation in gc.get_stats()]
    waiting = [[number] for number in range(50_000)]
    looks = [generation["collections"] - count for generation, count in zip(gc.get_stats(), before, strict=True)]
    assert len(waiting) == 50_000
    assert (looks[0] <= 1, looks[1:]) == (True, [0, 0])


def test_cycles_are_collected() -> None:
    """
    Garbage collection is automatic.
    """
    collect_cycles_seldom()
    before = gc.get_stats()[0]["collected"]
    for _ in range(60_000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collected"] > before
