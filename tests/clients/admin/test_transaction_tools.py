"""
`kafka-transactions` against Kafka and a gateway: both tell the same of open, ended and hanging transactions, and end
what hangs.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from tests.clients.admin.sides import TOPIC, Side
from tests.clients.admin.test_tools import Printed, Run, assert_same
from tests.clients.admin.test_tools import tool as tool
from tests.clients.client import PATIENCE_S

TOOL = "org.apache.kafka.tools.TransactionsCommand"
_OWN = re.compile(r"\b(\d{13}|\d{4,}|\d+)\b")  # times, durations and ids


@pytest.fixture
def producers(sides: tuple[Side, Side]) -> Iterator[list[Producer]]:
    """
    On each side a producer in the middle of a transaction, behind one that has committed.
    """
    with ExitStack() as stack:
        made = []
        for side in sides:
            for name in ("done", "open"):
                producer = Producer({"bootstrap.servers": side.bootstrap, "transactional.id": name})
                producer.init_transactions(PATIENCE_S)
                producer.begin_transaction()
                producer.produce(TOPIC, b"value", partition=1)
                producer.flush(PATIENCE_S)
                if name == "done":
                    producer.commit_transaction(PATIENCE_S)
            stack.callback(producer.purge)
            made.append(producer)
        yield made
        for producer in made:
            producer.abort_transaction(PATIENCE_S)


def shown(printed: tuple[Printed, Printed]) -> tuple[Printed, Printed]:
    """
    Without what is each server's own: ids of producers, times, and the widths that follow from them.
    """
    kafka, gateway = (
        Printed(one.code, tuple(sorted(re.sub(r"\s+", " ", _OWN.sub("N", line)) for line in one.lines)))
        for one in printed
    )
    return kafka, gateway


def test_transactions(tool: Run, producers: list[Producer]) -> None:
    """
    They are listed and described, and so are the producers of a partition; filters filter.
    """
    assert producers
    assert_same(shown(tool(TOOL, "list")), says="open")
    assert_same(shown(tool(TOOL, "list", "--duration-filter", "1000000000")))
    assert_same(shown(tool(TOOL, "list", "--transactional-id-pattern", "do.*")), says="done")
    assert_same(shown(tool(TOOL, "describe", "--transactional-id", "open")), says="Ongoing")
    assert_same(shown(tool(TOOL, "describe", "--transactional-id", "done")), says="CompleteCommit")
    assert_same(shown(tool(TOOL, "describe", "--transactional-id", "nobody")), code=1)
    assert_same(shown(tool(TOOL, "describe-producers", "--topic", TOPIC, "--partition", "1")))
    assert_same(shown(tool(TOOL, "find-hanging", "--broker-id", "1")))
    assert_same(shown(tool(TOOL, "abort", "--topic", TOPIC, "--partition", "1", "--start-offset", "99")), code=1)
