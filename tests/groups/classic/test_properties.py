"""
Invariants of a classic group, whatever happens to its members, its disk and its gateway.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.crowd import Client, Crowd

_EXAMPLES = 10 * settings().max_examples
_MOST = 8  # clients alive at a time

_TO_ALL = ("start", "start old", "start static", "wait", "wait long", "slow disk", "disk done", "disk failed", "disk")
_TO_ONE = ("kill", "leave", "take out", "hang", "wake", "cut", "change", "bounce", "double", "commit", "commit stale")
_STEPS = st.tuples(st.sampled_from((*_TO_ALL, *_TO_ONE, "restart", "restart, loses", "full disk")), st.integers(0, 40))


class Play:
    """
    Applies steps to a crowd.
    """

    def __init__(self) -> None:
        self.crowd = Crowd()

    def do(self, step: str, number: int) -> None:
        crowd = self.crowd
        live = [client for client in crowd.clients if not client.is_gone]
        if step in _TO_ONE:
            if live:
                self.do_to(live[number % len(live)], step)
        elif step.startswith("start"):
            instance_id = f"i{number}" if step == "start static" else None
            if len(live) < _MOST and not any(instance_id and each.instance_id == instance_id for each in live):
                crowd.start(is_old=step == "start old", instance_id=instance_id)
        else:
            others: dict[str, Any] = {
                "wait": lambda: crowd.tick(1 + number % 4),
                "wait long": lambda: crowd.tick(number),
                "restart": lambda: crowd.restart(keep=True),
                "restart, loses": lambda: crowd.restart(keep=False),
                "slow disk": lambda: setattr(crowd.disk, "waits", True),
                "full disk": lambda: setattr(crowd.disk, "refuses", _full()),
                "disk done": crowd.disk.settle,
                "disk failed": lambda: crowd.disk.settle(_full()),
                "disk": self.good_disk,
            }
            others[step]()
        crowd.tick(1)

    def good_disk(self) -> None:
        self.crowd.disk.refuses, self.crowd.disk.waits = None, False
        self.crowd.disk.settle()

    def do_to(self, client: Client, step: str) -> None:
        crowd, instance_id = self.crowd, client.instance_id
        match step:
            case "kill":
                client.is_gone = True
            case "leave" | "take out":
                crowd.remove(client)
                client.is_gone = step == "leave" and instance_id is None
            case "hang" | "wake":
                client.is_hung = step == "hang"
                client.may_be_forgotten |= client.is_hung
            case "cut":
                client.cut()
            case "change":
                client.change("returns")
            case "bounce" | "double":
                client.is_gone = step == "bounce" and instance_id is not None
                if instance_id:
                    crowd.start(instance_id=instance_id, is_old=client.is_old)
            case "commit" | "commit stale":
                crowd.commit(client, client.generation if step == "commit" else max(0, crowd.newest - 1))


def _full() -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the disk is full")


@settings(max_examples=_EXAMPLES)
@given(st.lists(_STEPS, min_size=40, max_size=80))
def test_invariants_of_a_crowd(steps: list[tuple[str, int]]) -> None:
    """
    No partition has two owners in a generation, generations only increase, no live member is forgotten, commits of
    old generations are refused, every request is answered, and in the end the live members are one generation.
    """
    play = Play()
    for step, number in steps:
        play.do(step, number)
    play.crowd.settle()
