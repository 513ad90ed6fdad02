"""
Names and patterns of topics.
"""

import pytest

from kgateway.cli.common.errors import CommandError
from kgateway.cli.common.topic_names import matching_topics
from kgateway.client.topics import TopicDescription

KNOWN = {
    name: TopicDescription(name, "", name.startswith("__"), [])
    for name in ("__offsets", "billing", "order.1", "orders")
}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["orders"], ["orders"]),
        (["order*", "billing", "orders"], ["order.1", "orders", "billing"]),
        (["order?"], ["orders"]),
        (["*"], ["billing", "order.1", "orders"]),
        (["__offsets"], ["__offsets"]),
    ],
)
def test_names_and_patterns_match(names: list[str], found: list[str]) -> None:
    """
    Each topic is matched once, and internal topics only by their names.
    """
    assert [topic.name for topic in matching_topics(KNOWN, names)] == found


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["ordres"], "there is no topic ordres; did you mean orders or order.1?"),
        (["orders.1"], "there is no topic orders.1; did you mean order.1 or orders?"),
        (["zzz"], "there is no topic zzz"),
        (["z*", "zzz", "orders"], "no topic matches z*; there is no topic zzz"),
        (["__*"], "no topic matches __*"),
    ],
)
def test_an_unmatched_pattern_is_refused(names: list[str], says: str) -> None:
    """
    The reason suggests similar names.
    """
    with pytest.raises(CommandError) as refused:
        matching_topics(KNOWN, names)
    assert str(refused.value) == says
