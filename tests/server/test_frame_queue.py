"""
Frames that wait.
"""

from kgateway.server.budget import ByteBudget, Reservation
from kgateway.server.frame_queue import QUEUED_BYTES_MAX, QUEUED_FRAMES_MAX, FrameQueue


class Reserving:
    """
    Reserves from one budget and keeps what it was asked.
    """

    def __init__(self, limit: int = 1 << 40) -> None:
        self.budget = ByteBudget(limit)
        self.asked: list[int] = []

    def __call__(self, size: int) -> Reservation:
        self.asked.append(size)
        return self.budget.reserve(size, lambda: None)


def test_frames_that_start_at_once_reserve_nothing() -> None:
    """
    Only `account` reserves, and what was taken before it needs nothing.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"two"])
    assert [queue.take(), queue.take()] == [(b"one", None), (b"two", None)]
    queue.account(0, reserve)
    assert reserve.asked == []
    assert not queue.frames


def test_what_waits_is_reserved_once() -> None:
    """
    Each queued frame, and the one that has begun, are accounted for a single time.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"three"])
    queue.account(1000, reserve)
    queue.account(1000, reserve)
    assert sorted(reserve.asked) == [3, 5, 1000]
    queue.extend([b"x" * 1000, b"six"])
    queue.account(0, reserve)
    assert sorted(reserve.asked) == [3, 3, 5, 1000]
    assert reserve.budget.used == 1011


def test_a_complete_frame_keeps_the_reservation_it_began_with() -> None:
    """
    The first frame that comes complete is the one that had begun.
    """
    queue, reserve = FrameQueue(), Reserving()
    queue.account(7, reserve)
    begun = queue.beginning
    queue.extend([b"sevenby", b"later"])
    assert queue.beginning is None
    assert queue.take() == (b"sevenby", begun)
    assert queue.take() == (b"later", None)


def test_too_much_to_hold_is_heavy() -> None:
    """
    Bytes and frames are bounded; taking one makes it light again.
    """
    many, large = FrameQueue(), FrameQueue()
    many.extend([b""] * QUEUED_FRAMES_MAX)
    large.extend([b"x" * QUEUED_BYTES_MAX])
    assert not many.is_heavy
    assert not large.is_heavy
    many.extend([b""])
    large.extend([b"x"])
    assert many.is_heavy
    assert large.is_heavy
    many.take()
    large.take()
    assert not many.is_heavy
    assert not large.is_heavy


def test_waiting_for_memory_is_heavy() -> None:
    """
    A frame that has begun, or one that is queued, without memory stops the reading.
    """
    reserve = Reserving(limit=10)
    begun, queued = FrameQueue(), FrameQueue()
    held = reserve(10)
    begun.account(5, reserve)
    queued.extend([b"four"])
    queued.account(0, reserve)
    assert begun.is_heavy
    assert queued.is_heavy
    held.release()
    assert not begun.is_heavy
    assert not queued.is_heavy


def test_clearing_gives_everything_back() -> None:
    """
    Nothing stays reserved for a connection that ends.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"two"])
    queue.account(100, reserve)
    queue.clear()
    assert reserve.budget.used == 0
    assert not queue.frames
    assert not queue.is_heavy
