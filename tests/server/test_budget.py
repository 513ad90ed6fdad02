"""
Memory for requests, shared by all connections.
"""

import gc
from weakref import ref

import pytest

from kgateway.server.budget import SMALL_FRAME_BYTES, ByteBudget, RequestMemory, Reservation


def _reserve(budget: ByteBudget, size: int, woken: list[int] | None = None) -> Reservation:
    return budget.reserve(size, lambda: (woken if woken is not None else []).append(size))


def test_free_bytes_are_granted_at_once() -> None:
    """
    While the sum is within the limit nobody waits, and nobody is woken.
    """
    budget, woken = ByteBudget(100), list[int]()
    assert _reserve(budget, 60, woken).granted
    assert _reserve(budget, 40, woken).granted
    assert (budget.used, budget.waiting, woken) == (100, 0, [])


def test_waiting_reservations_are_granted_in_order() -> None:
    """
    A small one does not overtake a large one, even if there is room for it.
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


def test_released_bytes_go_to_the_first_in_line() -> None:
    """
    It waits until there is enough for it.
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


def test_a_reservation_that_is_released_in_line_blocks_nobody() -> None:
    budget, woken = ByteBudget(100), list[int]()
    held = _reserve(budget, 60)
    given_up, next_one = _reserve(budget, 90, woken), _reserve(budget, 40, woken)
    given_up.release()
    assert next_one.granted
    assert woken == [40]
    held.release()
    next_one.release()
    assert budget.used == 0


def test_a_second_release_has_no_effect() -> None:
    budget = ByteBudget(100)
    once, other = _reserve(budget, 30), _reserve(budget, 30)
    once.release()
    once.release()
    assert budget.used == 30
    other.release()
    assert budget.used == 0


def test_more_than_the_limit_waits_for_all_of_it() -> None:
    """
    Such a reservation is granted alone, rather than never.
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
    Clients that hold all memory for large frames do not affect small ones, and vice versa.
    """
    memory = RequestMemory(1 << 30, 100 << 20)
    _reserve(memory.large if small else memory.small, 1 << 40)
    assert memory.reserve(size, lambda: None).granted


def test_the_largest_frame_always_fits() -> None:
    """
    However little memory there is, a frame of the largest size can be read, and a small one.
    """
    memory = RequestMemory(1 << 20, 100 << 20)
    assert memory.large.limit == 100 << 20
    assert memory.small.limit >= SMALL_FRAME_BYTES


class _Cycle:
    """
    Refers to itself, as a failure can that knows its own frame.
    """

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(("size", "gone"), [(20 << 20, True), (SMALL_FRAME_BYTES, False)], ids=["large", "small"])
def test_large_frames_in_cycles_are_collected(size: int, gone: bool) -> None:
    """
    After every quarter of their memory garbage is collected. Small frames can wait.
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
