"""
`kgateway transactions` with a gateway that runs, and producers of another library.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from kgateway.cli.main import main
from kgateway.testing.kafka import Kafka

TOPIC = "orders"
PATIENCE_S = 30
TIMEOUT_MS = 20_000  # the longest transaction timeout

Transactions = Callable[..., tuple[object, str]]  # exit code or reason of the command, and its output


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka("--transaction-max-timeout-ms", str(TIMEOUT_MS)) as kafka:
        yield kafka


@pytest.fixture
def transactions(kafka: Kafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Transactions:
    """
    Run `kgateway transactions`; returns the exit code or the reason of a failure, and the output.
    """
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", kafka.bootstrap)

    def called(*arguments: object) -> tuple[object, str]:
        code: object = 0
        try:
            main(["transactions", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
        printed = capsys.readouterr()
        return printed.err.removesuffix("\n") if code == 1 else code, printed.out

    return called


@contextmanager
def writing(kafka: Kafka, name: str) -> Iterator[Producer]:
    """
    A producer in the middle of a transaction.
    """
    settings = {"transactional.id": name, "transaction.timeout.ms": TIMEOUT_MS, "log_level": 0}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"value", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    yield producer
    producer.purge()


def asked(transactions: Transactions, *arguments: object) -> Any:
    code, text = transactions(*arguments, "--json")
    assert code == 0, text
    return json.loads(text)


def test_list(kafka: Kafka, transactions: Transactions) -> None:
    """
    All ids are listed, or those in some state.
    """
    with writing(kafka, "listed") as producer:
        code, text = transactions("list", "--state", "ongoing")
        headings, *rows = text.splitlines()
        assert (code, headings.split()[:2]) == (0, ["TRANSACTIONAL", "ID"])
        assert [row.split()[:2] for row in rows] == [["listed", "Ongoing"]]
        producer.commit_transaction(PATIENCE_S)
    [found] = [one for one in asked(transactions, "list")["transactions"] if one["transactional_id"] == "listed"]
    assert found["state"] in ("PrepareCommit", "CompleteCommit")
    code, text = transactions("list", "--state", "Ongoing")
    assert (code, text.startswith("no transactional id matches (")) == (0, True)


def test_describe(kafka: Kafka, transactions: Transactions) -> None:
    """
    The producer, the start and the partitions are shown.
    """
    with writing(kafka, "described") as producer:
        [found] = asked(transactions, "describe", "described")["transactions"]
        assert (found["state"], found["partitions"]) == ("Ongoing", [{"topic": TOPIC, "partition": 0}])
        assert found["started_ms"] > 0
        code, text = transactions("describe", "described")
        assert code == 0
        first, since, where = text.splitlines()
        assert first.startswith(f"described: Ongoing, producer {found['producer_id']} in epoch ")
        assert since.startswith("  open for ")
        assert since.endswith(f", will be aborted after {found['timeout_ms'] / 1000:g} s")
        assert where == f"  writes to {TOPIC}-0"
        producer.abort_transaction(PATIENCE_S)
    code, text = transactions("describe", "nobody")
    assert "TRANSACTIONAL_ID_NOT_FOUND" in str(code)


def test_abort(kafka: Kafka, transactions: Transactions) -> None:
    """
    The transaction is aborted and its producer fenced; without an open transaction nothing is aborted.
    """
    with writing(kafka, "aborted") as producer:
        code, text = transactions("abort", "aborted")
        assert "add --yes to confirm, because" in str(code)
        assert transactions("abort", "aborted", "--yes") == (0, "aborted: aborted\n")
        with pytest.raises(KafkaException):
            producer.commit_transaction(PATIENCE_S)
    code, text = transactions("abort", "aborted", "--yes")
    assert "has no transaction open" in str(code)
    assert text == ""


def test_abort_a_transaction_with_a_longer_timeout_than_allowed(
    tmp_path: Path, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The server's limit may be lower now than when the producer began.
    """
    data = ("--broker", f"log:{tmp_path / 'data'}")
    with Kafka(*data, folder=tmp_path) as before, writing(before, "long"):
        pass
    with Kafka(*data, "--transaction-max-timeout-ms", "1000", folder=tmp_path) as lower:
        monkeypatch.setenv("KGATEWAY_BOOTSTRAP", lower.bootstrap)
        assert transactions("abort", "long", "--yes") == (0, "long: aborted\n")


def test_abort_a_hanging_transaction(kafka: Kafka, transactions: Transactions) -> None:
    """
    It is ended by hand, in one partition.
    """
    with writing(kafka, "hanging") as producer:
        code, _ = transactions("abort", "--hanging", TOPIC, 0, 999, "--yes")
        reason = str(code)
        assert f"no transaction of {TOPIC}-0 begins at offset 999, but at " in reason
        offset = reason.rpartition(" ")[2]
        code, text = transactions("abort", "--hanging", TOPIC, 0, offset, "--yes")
        assert (code, text) == (0, f"{TOPIC}-0 from offset {offset} on: aborted\n")
        code, _ = transactions("abort", "--hanging", TOPIC, 0, offset, "--yes")
        assert ": none is open there" in str(code)
        producer.abort_transaction(PATIENCE_S)


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), (TOPIC, 99)])
def test_a_missing_partition_cannot_be_ended_by_hand(transactions: Transactions, topic: str, partition: int) -> None:
    """
    The command does not wait for a missing partition.
    """
    code, _ = transactions("abort", "--hanging", topic, partition, 0, "--yes")
    assert str(code).startswith("kgateway transactions abort: there is no ")


@pytest.mark.parametrize("wrong", [(), ("a", "--hanging", "t", "0", "0"), ("--hanging", "t", "x", "0")])
def test_mistakes(transactions: Transactions, wrong: tuple[str, ...]) -> None:
    """
    Either an id or --hanging is required.
    """
    assert transactions("abort", *wrong) == (2, "")
