"""
Frames that wait for their start, and answers that are pending.
"""

from kgateway.server.budget import ByteBudget, RequestMemory, Reservation
from kgateway.server.request_queue import (
    QUEUED_BYTES_MAX,
    QUEUED_FRAMES_MAX,
    STARTED_MAX,
    FrameQueue,
    PendingAnswer,
    PendingAnswers,
)


class Reserving:
    """
    Reserves from one budget, and records the sizes.
    """

    def __init__(self, limit: int = 1 << 40) -> None:
        self.budget = ByteBudget(limit)
        self.asked: list[int] = []

    def __call__(self, size: int) -> Reservation:
        self.asked.append(size)
        return self.budget.reserve(size, lambda: None)


def test_frames_that_start_at_once_reserve_nothing() -> None:
    """
    Only `reserve_memory` reserves, and frames taken before need nothing.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"two"])
    assert [queue.take(), queue.take()] == [(b"one", None), (b"two", None)]
    queue.reserve_memory(0, reserve)
    assert reserve.asked == []
    assert not queue.frames


def test_waiting_frames_reserve_once() -> None:
    """
    Each queued frame, and the incomplete one, is counted once.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"three"])
    queue.reserve_memory(1000, reserve)
    queue.reserve_memory(1000, reserve)
    assert sorted(reserve.asked) == [3, 5, 1000]
    queue.extend([b"x" * 1000, b"six"])
    queue.reserve_memory(0, reserve)
    assert sorted(reserve.asked) == [3, 3, 5, 1000]
    assert reserve.budget.used == 1011


def test_a_complete_frame_keeps_its_reservation() -> None:
    """
    The incomplete frame is the first to be completed.
    """
    queue, reserve = FrameQueue(), Reserving()
    queue.reserve_memory(7, reserve)
    begun = queue.reservation_of_incomplete
    queue.extend([b"sevenby", b"later"])
    assert queue.reservation_of_incomplete is None
    assert queue.take() == (b"sevenby", begun)
    assert queue.take() == (b"later", None)


def test_a_long_queue_pauses_reading() -> None:
    """
    Bytes and frames are bounded; taking one resumes reading.
    """
    many, large = FrameQueue(), FrameQueue()
    many.extend([b""] * QUEUED_FRAMES_MAX)
    large.extend([b"x" * QUEUED_BYTES_MAX])
    assert not many.must_pause
    assert not large.must_pause
    many.extend([b""])
    large.extend([b"x"])
    assert many.must_pause
    assert large.must_pause
    many.take()
    large.take()
    assert not many.must_pause
    assert not large.must_pause


def test_waiting_for_memory_pauses_reading() -> None:
    """
    An incomplete or a queued frame may lack memory.
    """
    reserve = Reserving(limit=10)
    begun, queued = FrameQueue(), FrameQueue()
    held = reserve(10)
    begun.reserve_memory(5, reserve)
    queued.extend([b"four"])
    queued.reserve_memory(0, reserve)
    assert begun.must_pause
    assert queued.must_pause
    held.release()
    assert not begun.must_pause
    assert not queued.must_pause


def test_clear_releases_everything() -> None:
    """
    A closed connection reserves nothing.
    """
    reserve = Reserving()
    queue = FrameQueue()
    queue.extend([b"one", b"two"])
    queue.reserve_memory(100, reserve)
    queue.clear()
    assert reserve.budget.used == 0
    assert not queue.frames
    assert not queue.must_pause


def pending_answer(*, next_may_start: bool = True) -> PendingAnswer:
    """
    An answer that is not ready.
    """
    return PendingAnswer(next_may_start=next_may_start, polls=False)


def test_the_last_answer_decides_whether_the_next_may_start() -> None:
    """
    It may hold it back until it is ready.
    """
    unsent, held = PendingAnswers(), pending_answer(next_may_start=False)
    assert unsent.next_may_start
    unsent.expect(held, lambda: None)
    assert not unsent.next_may_start
    held.succeed([])
    assert unsent.next_may_start
    unsent.expect(pending_answer(), lambda: None)
    assert unsent.next_may_start


def test_pending_answers_are_bounded() -> None:
    """
    The last one does not matter then.
    """
    unsent = PendingAnswers()
    for _ in range(STARTED_MAX):
        assert unsent.next_may_start
        unsent.expect(pending_answer(), lambda: None)
    assert not unsent.next_may_start


def test_memory_is_reserved_until_the_answer() -> None:
    """
    The connection is woken when it is released.
    """
    memory, woken = RequestMemory(1 << 20, 1 << 20), list[int]()
    answer = pending_answer()
    PendingAnswers().expect(answer, lambda: woken.append(memory.small.used), memory.reserve(100, lambda: None))
    assert (memory.small.used, woken) == (100, [])
    answer.succeed([])
    assert (memory.small.used, woken) == (0, [0])
