"""
The examples of docs/spark.md do what the page says.
"""

import json
import re
from pathlib import Path
from typing import Any

from tests.spark.gateway import Topics, numbers

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()


def test_examples(topics: Topics, tmp_path: Path) -> None:
    """
    They run one after the other: read, stream into another topic, once too, choose columns, read files, typed columns.
    """
    orders: list[dict[str, Any]] = [
        {"key": key, "value": json.dumps({"id": id_, "who": "me"}).encode()} for id_, key in enumerate("aab")
    ]
    topics.make(*orders, {"value": b'{"id": 3}'}, name="orders")
    for name in ("orders-with-a-key", "order-counts", "orders-once"):
        topics.make(name=name)
    scope: dict[str, Any] = {}
    for example in re.findall(r"^```py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        here = example.replace("127.0.0.1:9092", topics.kafka.bootstrap).replace("/tmp/order", f"{tmp_path}/order")
        exec(compile(here, "docs/spark.md", "exec"), scope)
    assert scope["orders"].count() == 4
    for query in (scope["query"], scope["counting"], scope["once"]):
        query.processAllAvailable()
        query.stop()
    assert topics.read("orders-with-a-key").count() == 3
    assert numbers(topics.read("order-counts").collect()) == [1, 1, 2]
    assert topics.read("orders-once", **{"kafka.isolation.level": "read_committed"}).count() == 4
    typed = sorted(tuple(row) for row in scope["typed"].select("id", "who").collect())
    assert typed == [(0, "me"), (1, "me"), (2, "me"), (3, None)]
