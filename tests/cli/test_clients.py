"""
`kgateway clients` with a gateway that runs.
"""

import socket
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from kgateway.control.connections import LIMIT_MAX
from kgateway.testing.kafka import Kafka
from tests.cli.tools import Tool, new_topic


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    A gateway whose groups do not wait for members.
    """
    with Kafka("--broker", "memory:", "--group-initial-rebalance-delay-ms", "0") as kafka:
        yield kafka


@pytest.fixture(scope="module")
def tool(kafka: Kafka) -> Tool:
    return Tool(kafka.bootstrap, kafka.control_socket)


@pytest.fixture(scope="module")
def topic(tool: Tool) -> str:
    return new_topic(tool)


@pytest.fixture(scope="module")
def producer(tool: Tool, topic: str) -> Producer:
    """
    A producer that has sent a record of a hundred thousand bytes.
    """
    producer = Producer(
        {"bootstrap.servers": tool.bootstrap, "client.id": "billing-1", "topic.metadata.refresh.interval.ms": -1}
    )
    producer.produce(topic, bytes(100_000))
    producer.flush()
    return producer


@pytest.fixture(scope="module")
def consumer(tool: Tool, topic: str, producer: Producer) -> Iterator[Consumer]:
    """
    A consumer that has read the record and waits for more.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": tool.bootstrap,
            "client.id": "report-1",
            "group.id": "report",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 60_000,
        }
    )
    consumer.subscribe([topic])
    while not consumer.poll(1):
        pass
    yield consumer
    consumer.close()


def test_connections_are_a_table(tool: Tool, kafka: Kafka, producer: Producer, consumer: Consumer) -> None:
    """
    Each connection is a line.
    """
    heading, *lines = tool("clients", "--sort", "in").lines
    assert heading.split() == [
        "CLIENT",
        "SOFTWARE",
        "ADDRESS",
        "LISTENER",
        "SINCE",
        "REQUESTS",
        "IN",
        "OUT",
        "WAITS",
        "FOR",
    ]
    cells = lines[0].split()
    assert cells[:2] == ["billing-1", "confluent-kafka-python"]
    assert cells[4] == "plaintext"
    assert (float(cells[7]) > 97, cells[8]) == (True, "KiB")
    assert lines[0].endswith("  a request")


def test_for_programs(tool: Tool, producer: Producer, consumer: Consumer) -> None:
    """
    JSON has all details.
    """
    told = tool("clients", "--client", "billing-*", "--sort", "in", "--json").json
    assert (told["connected"], told["fitting"]) >= (told["fitting"], len(told["clients"]))
    largest = told["clients"][0]
    assert largest["bytes_in"] > 100_000
    assert largest["requests"] >= 2
    assert largest["bytes_out"] > 0
    assert largest["principal"] == "User:ANONYMOUS"
    host, _, port = largest["address"].rpartition(":")
    assert (host, port.isdecimal()) == ("127.0.0.1", True)
    now_ms = time.time() * 1000
    assert now_ms - 120_000 < largest["since_ms"] <= now_ms
    assert {client["client_id"] for client in told["clients"]} == {"billing-1"}


def test_unknown_software(tool: Tool, kafka: Kafka) -> None:
    """
    Missing details are null in JSON, and a dash in the table.
    """
    with socket.create_connection(("127.0.0.1", kafka.port)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        only: tuple[str, ...] = ("clients", "--client", address)
        while not (found := tool(*only, "--json").json["clients"]):
            pass  # it is accepted soon
        assert [found[0][name] for name in ("client_id", "software", "software_version")] == [None] * 3
        assert tool(*only).lines[1].split()[:3] == ["-", "-", address]


def test_the_example_of_software_fits_real_clients(tool: Tool, producer: Producer) -> None:
    """
    The help's first example matches that client in Python.
    """
    told = " ".join(tool("clients", "--help").lines)
    pattern, _, name = told.partition("with this software, such as '")[2].split("'")[:3]
    assert (pattern, name) == ("confluent-kafka-*", "librdkafka")
    found = tool("clients", "--software", pattern, "--client", "billing-1", "--json").json["clients"]
    assert {client["software"] for client in found} == {"confluent-kafka-python"}


def test_a_waiting_fetch(tool: Tool, producer: Producer, consumer: Consumer) -> None:
    """
    A long poll is shown as waiting for Fetch.
    """
    waiting: set[str] = set()
    while "the response to Fetch" not in waiting:  # the consumer sends the next Fetch at once
        told = tool("clients", "--client", "report-*", "--json").json
        waiting = {client["waits_for"] for client in told["clients"]}
    assert waiting <= {"the response to Fetch", "a request", "the response to Heartbeat"}


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        (["--client", "report-?"], {"report-1"}),
        (["--client", "127.0.0.1:*"], {"billing-1", "report-1"}),
        (["--software", "confluent*"], {"billing-1", "report-1"}),
        (["--listener", "plain*", "--client", "b*"], {"billing-1"}),
    ],
)
def test_patterns(tool: Tool, producer: Producer, consumer: Consumer, options: list[str], fits: set[str]) -> None:
    """
    A client must match all patterns.
    """
    told = tool("clients", *options, "--json").json["clients"]
    assert {client["client_id"] for client in told} - {"rdkafka"} == fits


def test_no_match(tool: Tool, producer: Producer) -> None:
    assert tool("clients", "--listener", "other").lines[0].startswith("no client matches (")


def test_limit(tool: Tool, producer: Producer, consumer: Consumer) -> None:
    """
    The command says how many connections were left out.
    """
    heading, line, left = tool("clients", "--client", "*-1", "--limit", 1).lines
    assert heading.startswith("CLIENT")
    assert line.startswith("billing-1")
    assert left.startswith("and ")
    assert left.endswith(" more: see --limit")


def test_sorted(tool: Tool, producer: Producer, consumer: Consumer) -> None:
    """
    The largest numbers are first.
    """
    for sort, field in (("requests", "requests"), ("in", "bytes_in"), ("out", "bytes_out"), ("idle", "idle_s")):
        told = [client[field] for client in tool("clients", "--sort", sort, "--json").json["clients"]]
        assert told == sorted(told, reverse=True)
    told = [client["since_ms"] for client in tool("clients", "--sort", "since", "--json").json["clients"]]
    assert told == sorted(told)


def test_no_client_is_connected() -> None:
    with Kafka("--broker", "memory:") as kafka:
        assert Tool(kafka.bootstrap, kafka.control_socket)("clients").lines == ["no clients are connected"]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--sort", "age"], 2, "argument --sort: 'age' must be one of client, since, idle, requests, in, out"),
        (["--limit", "x"], 2, "argument --limit: must be a whole number of at least 1, not 'x'"),
        (["--limit", "0"], 2, "argument --limit: must be a whole number of at least 1, not '0'"),
        (["--limit", str(LIMIT_MAX + 1)], 2, f"argument --limit: at most {LIMIT_MAX} are listed at once"),
        (["--control-socket", "/nowhere"], 1, "no gateway responds at /nowhere: is it running in another folder?"),
    ],
)
def test_mistakes_in_the_command(tool: Tool, options: list[str], code: int, says: str) -> None:
    """
    Mistakes are reported in a line.
    """
    ended = tool("clients", *options)
    assert ended.code == code
    assert says in ended.err.splitlines()[-1]
