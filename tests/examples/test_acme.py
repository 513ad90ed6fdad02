"""
The two plugin examples, each in a folder on PYTHONPATH: an uninstalled distribution, and a package that an option
names.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kgateway.cli.main import main
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.examples.acme import LISTENERS, PUBLIC, Acme
from tests.examples.client import PATIENCE_S, Client


@pytest.fixture(scope="module")
def acme(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """
    A gateway with both examples.
    """
    copies = tmp_path_factory.mktemp("examples")  # Twisted and Python write files beside imported modules
    folders = [shutil.copytree(examples / name, copies / name) for name in ("acme-kgateway", "house-rules")]
    path = os.pathsep.join([*map(str, folders), str(examples.parent)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        with Kafka(*LISTENERS, "--handlers", "house_rules") as kafka:
            yield kafka


class TestAcme(Acme):
    """
    acme-kgateway is found by its folder in `twisted/plugins`.
    """


@pytest.fixture
def plugins(acme: Kafka, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main(["plugins", "--json", "--control-socket", acme.control_socket])
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["plugins"]
    return rows


def test_handlers_are_listed(plugins: list[dict[str, Any]]) -> None:
    """
    The list has the added handler and the replacing one, and the versions left to the built-in one.
    """
    rows = [(row["versions"], row["handler"], row["priority"]) for row in plugins if row["key"] in (20, 20_000)]
    assert rows == [
        ("1-4", "acme_kgateway.delete_topics.delete_topics", 10),
        ("5-6", "kgateway.handlers.delete_topics.delete_topics", 0),
        ("0-1", "acme_kgateway.count_records.count_records", 0),
    ]


def test_origins_are_listed(plugins: list[dict[str, Any]]) -> None:
    """
    The origin is a module, because no distribution brought it.
    """
    [count] = [row for row in plugins if row["api"] == "CountRecords"]
    assert (count["from"], count["module"]) == ("twisted.plugins.acme_kgateway", "twisted.plugins.acme_kgateway")


def test_filters_are_listed(plugins: list[dict[str, Any]]) -> None:
    """
    A filter is listed with the handlers around which it is put.
    """
    around = {row["api"]: [filter_row(one) for one in row["filters"]] for row in plugins if row["filters"]}
    assert around == {
        "Produce": [("acme_kgateway.audit.seal_audit", "twisted.plugins.acme_kgateway", 5, ["audit-*"])],
        "CreateTopics": [("house_rules.topic_names.check_names", "house_rules.topic_names", 0, [])],
    }


def filter_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """
    The row of a filter.
    """
    return row["filter"], row["from"], row["priority"], row["topics"]


def test_house_rules_refuse_a_request(acme: Kafka) -> None:
    """
    The whole request is refused, with the reason.
    """
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for name in ("billing.invoices", "invoices")
    ]
    with Client(acme.addresses[PUBLIC]) as client:
        response = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse, 7)
        assert [(topic.error_code, topic.error_message) for topic in response.topics] == [
            (ErrorCode.POLICY_VIOLATION, "invoices is not named TEAM.SUBJECT")
        ] * 2
        assert client.create("billing.invoices") == [ErrorCode.NONE]


def test_house_rules_hold_for_topics_that_are_created_by_use(acme: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A producer is refused at once, and the topic does not exist; one with a proper name is created.
    """
    outcomes: dict[str, int | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcomes[str(message.topic())] = error.code() if error else None

    producer = Producer({"bootstrap.servers": acme.addresses[PUBLIC], "message.timeout.ms": 20_000})
    for name in ("used", "billing.used"):
        producer.produce(name, b"value", on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert outcomes == {"used": ErrorCode.INVALID_TOPIC_EXCEPTION, "billing.used": None}
    with Client(acme.addresses[PUBLIC]) as client:
        assert client.id_of("used") is None
        assert client.id_of("billing.used") is not None
    main(["why", "--api", "Metadata", "--control-socket", acme.control_socket])
    assert "used is not named TEAM.SUBJECT" in capsys.readouterr().out


def test_why_shows_plugin_refusals(acme: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """
    `kgateway why` has the plugin's own words.
    """
    with Client(acme.addresses[PUBLIC]) as client:
        client.create("nameless")
    main(["why", "--client", "example", "--api", "CreateTopics", "--control-socket", acme.control_socket])
    assert "nameless is not named TEAM.SUBJECT" in capsys.readouterr().out


def test_without_the_examples_nothing_changes(shared_kafka: Kafka) -> None:
    """
    A gateway that does not find the examples has only its own handlers.
    """
    with Client(shared_kafka.bootstrap) as client:
        assert client.create("invoices") == [ErrorCode.NONE]
