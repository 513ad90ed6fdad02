"""
A send window sends some batches at once, and makes others wait for answers.
"""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from kgateway.broker.seaweedmq.publishing.in_flight import InFlight, OutgoingBatch, SendWindow
from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream


class Collected(PublishStream):
    def __init__(self) -> None:
        super().__init__(lambda *_: None, lambda *_: None, Clock())
        self.sent: list[bytes] = []

    def send(self, messages: Sequence[bytes]) -> None:
        self.sent += messages


class World:
    """
    A partition whose batches have a message for each offset, and answers that arrive when a test says so.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.held: list[OutgoingBatch] = []
        self.in_flight = InFlight(0, 0)
        self.stream = Collected()
        self.sending = SendWindow(self.stream, self.from_offset, lambda: self.window)
        self.taken = 0
        self.answered = 0

    def from_offset(self, offset: int) -> Iterator[OutgoingBatch]:
        for batch in self.held:
            if batch.end > offset:
                self.taken += 1
                yield batch

    def append(self, *sizes: int) -> None:
        start = self.held[-1].end if self.held else 0
        messages = [bytes([start + at & 0xFF]) * size for at, size in enumerate(sizes)]
        self.held.append(OutgoingBatch(start, start + len(sizes), messages, 0, 0))
        self.sending.send(self.held[-1], self.in_flight)

    def answer(self, count: int) -> None:
        self.answered += count
        self.in_flight.answered(count, self.answered - 1)
        self.sending.send_waiting(self.in_flight)


@pytest.fixture
def world() -> World:
    world = World(10)
    world.sending.send_waiting(world.in_flight)
    return world


def test_begins_with_what_is_held() -> None:
    """
    Batches appended before the window has begun keep their place.
    """
    world = World(100)
    world.append(1, 1)
    assert world.stream.sent == []
    world.sending.send_waiting(world.in_flight)
    world.append(1)
    assert world.stream.sent == [b"\0", b"\1", b"\2"]


def test_waits_for_answers(world: World) -> None:
    """
    The batch that exceeds the window is the last one for now; answers to whole batches make room.
    """
    for _ in range(4):
        world.append(4, 4)
    assert len(world.stream.sent) == 4
    assert world.sending.is_behind
    assert world.taken == 0
    world.answer(1)
    assert len(world.stream.sent) == 4, "half a batch makes no room"
    world.answer(1)
    assert len(world.stream.sent) == 6
    world.answer(4)
    assert len(world.stream.sent) == 8
    assert not world.sending.is_behind
    assert world.taken == 2, "nothing is taken that has no room"


def test_what_is_larger_than_the_window_goes_alone(world: World) -> None:
    world.append(50)
    world.append(1)
    assert len(world.stream.sent) == 1
    world.answer(1)
    assert len(world.stream.sent) == 2


def test_tells_when_all_was_sent(world: World) -> None:
    assert world.sending.all_sent().called
    world.append(11)
    world.append(1)
    sent = world.sending.all_sent()
    assert not sent.called
    world.answer(1)
    assert sent.called
    assert world.sending.all_sent().called


@given(
    st.integers(1, 30),
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5) | st.integers(1, 9), max_size=80),
)
def test_all_is_sent_in_order_and_once(window: int, steps: Sequence[list[int] | int]) -> None:
    """
    Answers may be slow.
    """
    world = World(window)
    world.sending.send_waiting(world.in_flight)
    for step in steps:
        if isinstance(step, list):
            world.append(*step)
        else:
            world.answer(min(step, len(world.stream.sent) - world.answered))
        assert world.in_flight.unanswered_bytes < window + 45
    while world.answered < len(world.stream.sent):
        world.answer(1)
    assert world.stream.sent == [message for batch in world.held for message in batch.messages]
    assert not world.sending.is_behind
    assert world.in_flight.unanswered_bytes == 0
