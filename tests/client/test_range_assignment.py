"""
Who of a group reads what.
"""

import pytest

from kgateway.client.range_assignment import shared_out

EACH = {
    "fewer members": ({"a": ["t"], "b": ["t"]}, {"t": 5}, {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4]}}),
    "more members": ({"b": ["t"], "a": ["t"], "c": ["t"]}, {"t": 2}, {"a": {"t": [0]}, "b": {"t": [1]}, "c": {}}),
    "two topics": (
        {"a": ["t", "u"], "b": ["u"]},
        {"t": 2, "u": 3},
        {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"u": [2]}},
    ),
    "a topic that nobody reads": ({"a": []}, {"t": 2}, {"a": {}}),
}


@pytest.mark.parametrize(("subscriptions", "partitions", "shares"), EACH.values(), ids=EACH.keys())
def test_each_topic_is_shared_out_in_runs(
    subscriptions: dict[str, list[str]], partitions: dict[str, int], shares: dict[str, dict[str, list[int]]]
) -> None:
    """
    By the order of the members' ids; the first ones have one more where it does not come out even.
    """
    assert shared_out(subscriptions, partitions) == shares
