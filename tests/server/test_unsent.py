"""
Answers that are started and not sent.
"""

from kgateway.server.budget import RequestMemory
from kgateway.server.pending import Pending
from kgateway.server.unsent import STARTED_MAX, Unsent


def pending(*, next_may_start: bool = True) -> Pending:
    """
    One that is not there yet.
    """
    return Pending(next_may_start=next_may_start, polls=False)


def test_the_last_one_decides_whether_the_next_may_start() -> None:
    """
    It may hold it back until it is ready.
    """
    unsent, held = Unsent(), pending(next_may_start=False)
    assert unsent.next_may_start
    unsent.expect(held, lambda: None)
    assert not unsent.next_may_start
    held.become([])
    assert unsent.next_may_start
    unsent.expect(pending(), lambda: None)
    assert unsent.next_may_start


def test_they_are_bounded() -> None:
    """
    Whatever the last one says.
    """
    unsent = Unsent()
    for _ in range(STARTED_MAX):
        assert unsent.next_may_start
        unsent.expect(pending(), lambda: None)
    assert not unsent.next_may_start


def test_the_bytes_of_a_request_are_reserved_until_it_is_answered() -> None:
    """
    Then who waits is woken.
    """
    memory, woken = RequestMemory(1 << 20, 1 << 20), list[int]()
    answer = pending()
    Unsent().expect(answer, lambda: woken.append(memory.small.used), memory.reserve(100, lambda: None))
    assert (memory.small.used, woken) == (100, [])
    answer.become([])
    assert (memory.small.used, woken) == (0, [0])
