"""
Bytes of requests, shared out.
"""

import gc
from weakref import ref

import pytest

from kgateway.server.budget import SMALL_FRAME_BYTES, ByteBudget, RequestMemory, Reservation


def _reserve(budget: ByteBudget, size: int, woken: list[int] | None = None) -> Reservation:
    return budget.reserve(size, lambda: (woken if woken is not None else []).append(size))


def test_bytes_that_are_free_are_granted_at_once() -> None:
    """
    As long as the sum is within the limit, nobody waits, and nobody is woken.
    """
    budget, woken = ByteBudget(100), list[int]()
    assert _reserve(budget, 60, woken).granted
    assert _reserve(budget, 40, woken).granted
    assert (budget.used, budget.waiting, woken) == (100, 0, [])


def test_who_waits_is_served_in_order() -> None:
    """
    A small reservation does not overtake the large one before it, though there would be room.
    """
    budget, woken = ByteBudget(100), list[int]()
    first = _reserve(budget, 70)
    large, small = _reserve(budget, 80, woken), _reserve(budget, 10, woken)
    assert not large.granted
    assert not small.granted
    first.release()
    assert large.granted
    assert small.granted
    assert woken == [80, 10]


def test_released_bytes_go_only_as_far_as_they_reach() -> None:
    """
    The front of the line waits until there is enough for it.
    """
    budget, woken = ByteBudget(100), list[int]()
    first, second = _reserve(budget, 50), _reserve(budget, 50)
    waiting = _reserve(budget, 80, woken)
    first.release()
    assert not waiting.granted
    assert budget.used == 50
    second.release()
    assert waiting.granted
    assert budget.used == 80


def test_leaving_the_line_lets_the_next_one_through() -> None:
    """
    Who gives up while waiting holds nothing and blocks nobody.
    """
    budget, woken = ByteBudget(100), list[int]()
    held = _reserve(budget, 60)
    given_up, next_one = _reserve(budget, 90, woken), _reserve(budget, 40, woken)
    given_up.release()
    assert next_one.granted
    assert woken == [40]
    held.release()
    next_one.release()
    assert budget.used == 0


def test_a_second_release_gives_nothing_back() -> None:
    """
    Bytes return once.
    """
    budget = ByteBudget(100)
    once, other = _reserve(budget, 30), _reserve(budget, 30)
    once.release()
    once.release()
    assert budget.used == 30
    other.release()
    assert budget.used == 0


def test_more_than_the_limit_waits_for_all_of_it() -> None:
    """
    A reservation above the limit is served alone, rather than never.
    """
    budget = ByteBudget(100)
    held = _reserve(budget, 1)
    huge = _reserve(budget, 500)
    assert not huge.granted
    held.release()
    assert huge.granted
    assert budget.used == 100


@pytest.mark.parametrize(("size", "small"), [(1, True), (SMALL_FRAME_BYTES, True), (SMALL_FRAME_BYTES + 1, False)])
def test_small_frames_have_a_budget_of_their_own(size: int, small: bool) -> None:
    """
    Peers that hold all that is for large frames leave small ones alone, and the other way round.
    """
    memory = RequestMemory(1 << 30, 100 << 20)
    _reserve(memory.large if small else memory.small, 1 << 40)
    assert memory.reserve(size, lambda: None).granted


def test_the_largest_frame_always_fits() -> None:
    """
    However little memory there is, one frame of the largest size can be read, and one small frame.
    """
    memory = RequestMemory(1 << 20, 100 << 20)
    assert memory.large.limit == 100 << 20
    assert memory.small.limit >= SMALL_FRAME_BYTES


class _Cycle:
    """
    Holds on to itself, as a failure can that knows its own frame.
    """

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(("size", "gone"), [(20 << 20, True), (SMALL_FRAME_BYTES, False)], ids=["large", "small"])
def test_large_frames_are_not_held_by_cycles(size: int, gone: bool) -> None:
    """
    After a quarter of the memory there is for them, what nobody has any more is looked for. Small ones can wait.
    """
    memory = RequestMemory(1 << 30, 100 << 20)
    gc.disable()
    try:
        cycle = ref(_Cycle())
        for _ in range(15):
            memory.reserve(size, lambda: None).release()
        assert (cycle() is None) == gone
    finally:
        gc.enable()
