"""
`kafka-transactions` shows the same open, ended and hanging transactions of Apache Kafka and of a gateway, and ends
hanging ones.
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
    A producer on each side in the middle of a transaction, behind a producer that has committed.
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
    The output without what each server generates: ids of producers, times, and the column widths that follow from
    them.
    """
    kafka, gateway = (
        Printed(one.code, tuple(sorted(re.sub(r"\s+", " ", _OWN.sub("N", line)) for line in one.lines)))
        for one in printed
    )
    return kafka, gateway


def test_transactions(tool: Run, producers: list[Producer]) -> None:
    """
    Transactions and the producers of a partition are listed and described; filters apply.
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
