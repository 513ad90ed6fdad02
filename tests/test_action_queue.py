"""
Answers first, and then what they cause.
"""

from functools import partial

import pytest
from twisted.logger import capturedLogs

from kgateway.action_queue import TURN_SECONDS, ActionQueue
from tests.turns import TurnClock


class Turns:
    """
    A queue and what was done, in turns of the reactor.
    """

    def __init__(self) -> None:
        self.clock = TurnClock()
        self.queue = ActionQueue(self.clock)
        self.done: list[str] = []

    def does(self, name: str, *, seconds: float = 0) -> None:
        self.done.append(name)
        self.clock.rightNow += seconds

    def adds(self, *names: str, seconds: float = 0) -> None:
        for name in names:
            self.queue.add(partial(self.does, name, seconds=seconds))

    def in_turn(self) -> list[str]:
        """
        What is done in the next turn.
        """
        self.done.clear()
        self.clock.turn()
        return list(self.done)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def test_answers_are_written_before_their_actions(turns: Turns) -> None:
    """
    Also if they are ready later, and all in one turn.
    """
    turns.adds("first", "second")
    turns.queue.write(partial(turns.does, "answer"))
    assert turns.in_turn() == ["answer", "first", "second"]


def test_what_actions_answer_is_written_in_the_same_turn(turns: Turns) -> None:
    turns.queue.add(lambda: turns.queue.write(partial(turns.does, "woken")))
    turns.adds("action")
    assert turns.in_turn() == ["action", "woken"]


def test_actions_that_take_long_give_the_sockets_a_turn(turns: Turns) -> None:
    """
    The others are done in the next turns.
    """
    turns.adds("first", "second", "third", seconds=TURN_SECONDS * 0.6)
    assert turns.in_turn() == ["first", "second"]
    assert turns.in_turn() == ["third"]


def test_requests_do_not_starve_actions(turns: Turns) -> None:
    """
    Actions may take as long as requests took since the first of them was added.
    """
    turns.adds("first", "second", "third", seconds=TURN_SECONDS)
    turns.clock.rightNow += 10 * TURN_SECONDS
    assert turns.in_turn() == ["first", "second", "third"]


def test_a_failed_action_is_logged_and_the_others_are_done(turns: Turns) -> None:
    def fail() -> None:
        raise RuntimeError("in an action")

    turns.queue.add(fail)
    turns.adds("other")
    with capturedLogs() as logged:
        assert turns.in_turn() == ["other"]
    assert "in an action" in str(logged[0]["log_failure"])


def test_a_failed_write_loses_no_other(turns: Turns) -> None:
    def fail() -> None:
        raise RuntimeError("in a write")

    turns.queue.write(fail)
    turns.queue.write(partial(turns.does, "answer"))
    turns.adds("action")
    with pytest.raises(RuntimeError):
        turns.in_turn()
    assert turns.in_turn() == ["answer", "action"]


def test_a_write_that_asks_for_another_gives_the_sockets_a_turn(turns: Turns) -> None:
    turns.queue.write(lambda: turns.queue.write(partial(turns.does, "rest")))
    assert turns.in_turn() == []
    assert turns.in_turn() == ["rest"]
