"""
Names and patterns of topics.
"""

import pytest

from kgateway.cli.named import chosen
from kgateway.cli.refused import Refused
from kgateway.client.topics import Topic

KNOWN = {name: Topic(name, "", name.startswith("__"), []) for name in ("__offsets", "billing", "order.1", "orders")}


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
def test_what_is_meant(names: list[str], found: list[str]) -> None:
    """
    Each once; internal topics only by their names.
    """
    assert [topic.name for topic in chosen(KNOWN, names)] == found


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["ordres"], "there is no topic ordres; did you mean orders or order.1?"),
        (["orders.1"], "there is no topic orders.1; did you mean order.1 or orders?"),
        (["zzz"], "there is no topic zzz"),
        (["z*", "zzz", "orders"], "no topic fits z*; there is no topic zzz"),
        (["__*"], "no topic fits __*"),
    ],
)
def test_what_is_not_there(names: list[str], says: str) -> None:
    """
    Is told, with what may be meant.
    """
    with pytest.raises(Refused) as refused:
        chosen(KNOWN, names)
    assert str(refused.value) == says
