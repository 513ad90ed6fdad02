"""
The filter of ListTransactions.
"""

import time
from typing import Any

import pytest

from kgateway.transactions.state import NO_TIME, TransactionState
from kgateway.transactions.transaction_filter import TransactionFilter
from tests.broker.behaviour import refusal
from tests.transactions.transaction_world import transaction

NOW = 1_000
ALL = [
    transaction(state=TransactionState.EMPTY, producer_id=1, started_ms=NO_TIME),
    transaction(state=TransactionState.ONGOING, producer_id=2, started_ms=900),
    transaction(state=TransactionState.COMPLETE_ABORT, producer_id=3, started_ms=100),
]


def passing(**wanted: Any) -> list[int]:
    return [one.producer_id for one in TransactionFilter(**wanted).passing(ALL, NOW)]


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
def test_a_transaction_must_match_in_every_respect(wanted: dict[str, Any], found: list[int]) -> None:
    """
    A pattern must match the whole id.
    """
    assert passing(**wanted) == found


def test_unknown_states_are_reported() -> None:
    assert TransactionFilter(states=["Empty", "nonsense", "empty"]).unknown_states == ["nonsense", "empty"]


def test_invalid_patterns_are_refused() -> None:
    """
    They are refused before the search.
    """
    assert refusal(lambda: TransactionFilter(pattern="[")).code.name == "INVALID_REGULAR_EXPRESSION"


def test_patterns_do_not_backtrack() -> None:
    """
    A pattern on which Python's own engine would backtrack for ever takes no time.
    """
    long = [transaction(producer_id=1)] * 3
    began = time.process_time()
    wanted = TransactionFilter(pattern="(a*)*b")
    assert wanted.passing(long, NOW) == []
    ids = [_named("a" * 5_000)]
    assert wanted.passing(ids, NOW) == []
    assert time.process_time() - began < 5


def _named(transactional_id: str) -> Any:
    return type(ALL[0])(transactional_id=transactional_id, producer_id=1, epoch=0, timeout_ms=1, updated_ms=1)
