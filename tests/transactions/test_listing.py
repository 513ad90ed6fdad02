"""
Which transactions an administrator asks for.
"""

import time
from typing import Any

import pytest

from kgateway.transactions.listing import Filter
from kgateway.transactions.state import NO_TIME, State
from tests.broker.behaviour import refusal
from tests.transactions.transacting import transaction

NOW = 1_000
ALL = [
    transaction(state=State.EMPTY, producer_id=1, started_ms=NO_TIME),
    transaction(state=State.ONGOING, producer_id=2, started_ms=900),
    transaction(state=State.COMPLETE_ABORT, producer_id=3, started_ms=100),
]


def passing(**wanted: Any) -> list[int]:
    return [one.producer_id for one in Filter(**wanted).passing(ALL, NOW)]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [1, 2, 3]),
        ({"states": ["Ongoing", "Empty"]}, [1, 2]),
        ({"states": ["ongoing"]}, []),
        ({"states": ["Dead", "PrepareEpochFence"]}, []),
        ({"producer_ids": [3, 4]}, [3]),
        ({"longer_than_ms": -1}, [1, 2, 3]),
        ({"longer_than_ms": 0}, [1, 2, 3]),
        ({"longer_than_ms": 99}, [1, 2, 3]),
        ({"longer_than_ms": 100}, [1, 3]),
        ({"longer_than_ms": 5_000}, []),
        ({"pattern": "a"}, [1, 2, 3]),
        ({"pattern": ""}, [1, 2, 3]),
        ({"pattern": "b|a.+"}, []),
        ({"states": ["Ongoing"], "producer_ids": [3]}, []),
        ({"producer_ids": [2, 3], "longer_than_ms": 100, "pattern": "[a-c]"}, [3]),
    ],
)
def test_filters(wanted: dict[str, Any], found: list[int]) -> None:
    """
    Those pass that fit in every respect; a pattern must fit the whole id.
    """
    assert passing(**wanted) == found


def test_unknown_states() -> None:
    """
    Names of no state are told as such.
    """
    assert Filter(states=["Empty", "nonsense", "empty"]).unknown_states == ["nonsense", "empty"]


def test_patterns_that_are_none() -> None:
    """
    A pattern that cannot be read is refused before anything is looked through.
    """
    assert refusal(lambda: Filter(pattern="[")).code.name == "INVALID_REGULAR_EXPRESSION"


def test_patterns_do_not_run_away() -> None:
    """
    What takes Python's own expressions for ever takes no time.
    """
    long = [transaction(producer_id=1)] * 3
    began = time.process_time()
    wanted = Filter(pattern="(a*)*b")
    assert wanted.passing(long, NOW) == []
    ids = [_named("a" * 5_000)]
    assert wanted.passing(ids, NOW) == []
    assert time.process_time() - began < 5


def _named(transactional_id: str) -> Any:
    return type(ALL[0])(transactional_id=transactional_id, producer_id=1, epoch=0, timeout_ms=1, updated_ms=1)
