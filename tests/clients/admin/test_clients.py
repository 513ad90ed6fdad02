"""
The admin clients of confluent-kafka, kafka-python and franz-go against Kafka and a gateway: each call has the same
outcome, except for the differences named here with their reasons.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition

# Type checkers do not see that some of these are exported.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka import TopicPartition as Place
from kafka.admin import ConfigResource as KafkaResource
from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError

from kgateway.wire.errors import ErrorCode
from tests.clients.admin import differences as why
from tests.clients.admin.sides import TOPIC, Side, comparable, same
from tests.clients.client import PATIENCE_S
from tests.clients.program import Program

Calls = dict[str, Callable[[], Any]]
CONFIGS = ("retention.ms", "segment.bytes", "cleanup.policy", "max.message.bytes")
BROKERS_CONFIGS = ("log.segment.bytes", "fetch.max.bytes", "delete.topic.enable")
_PREFERRED = 0
PLACES = [(TOPIC, 0), (TOPIC, 1)]


def outcomes(calls: Calls) -> dict[str, Any]:
    """
    The outcome of each call in order: a response, or the code of an error.
    """
    return {name: _outcome(call) for name, call in calls.items()}


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return comparable(call())
    except KafkaException as error:
        code, text = error.args[0].code(), error.args[0].str()
        return {"error_code": code, "error_message": None if text.startswith("Broker: ") else text}
    except KafkaError as error:
        return type(error).__name__


def assert_same(kafka: dict[str, Any], gateway: dict[str, Any]) -> None:
    different = [name for name in kafka if not same(kafka[name], gateway[name])]
    assert not different, [(name, kafka[name], gateway[name]) for name in different]
    assert kafka.keys() == gateway.keys()


def until(ask: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """
    The wanted response, as soon as it arrives: Kafka's broker learns of changes from its controller.
    """
    deadline = monotonic() + PATIENCE_S
    while not wanted(found := ask()):
        assert monotonic() < deadline, found
    return found


def confluent(side: Side) -> Calls:
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    topic, broker = ConfigResource(ResourceType.TOPIC, "c"), ConfigResource(ResourceType.BROKER, "1")

    def done(futures: dict[Any, Future[Any]]) -> Any:
        [future] = futures.values()
        return future.result(PATIENCE_S)

    def create(name: str, count: int = 2, factor: int = 1, **config: str) -> Callable[[], Any]:
        given = {key.replace("_", "."): value for key, value in config.items()}
        return lambda: done(admin.create_topics([NewTopic(name, count, factor, config=given)]))

    def alter(resource: Any, key: str, value: str, how: Any = AlterConfigOpType.SET) -> Callable[[], Any]:
        entry = ConfigEntry(key, value, incremental_operation=how)
        asked = ConfigResource(resource.restype, resource.name, incremental_configs=[entry])
        return lambda: done(admin.incremental_alter_configs([asked]))

    def described(resource: Any, *keys: str) -> dict[str, Any]:
        entries = done(admin.describe_configs([resource]))
        return {key: [getattr(entries[key], field) for field in ("value", "source", "is_read_only")] for key in keys}

    def changed() -> Any:
        return until(lambda: described(topic, *CONFIGS), lambda found: "2000000" in found["segment.bytes"])

    def offsets(spec: Any) -> list[Any]:
        found = admin.list_offsets({TopicPartition(*place): spec for place in PLACES})
        return [(place.topic, place.partition, future.result().offset) for place, future in found.items()]

    def low_watermark(offset: int) -> Any:
        return done(admin.delete_records([TopicPartition(TOPIC, 0, offset)])).low_watermark

    def elected() -> list[Any]:
        found = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(*place) for place in PLACES])
        return [(place.partition, error and error.name()) for place, error in found.result().items()]

    return {
        "create": create("c", retention_ms="77000"),
        "create again": create("c"),
        "create with a wrong name": create("a b"),
        "create with an unknown config": create("d", nope="1"),
        "create with a wrong value": create("d", retention_ms="x"),
        "create without partitions": create("d", 0),
        "grow": lambda: done(admin.create_partitions([NewPartitions("c", 3)])),
        "shrink": lambda: done(admin.create_partitions([NewPartitions("c", 1)])),
        "grow what is not there": lambda: done(admin.create_partitions([NewPartitions("nowhere", 3)])),
        "set": alter(topic, "segment.bytes", "2000000"),
        "append": alter(topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND),
        "set wrongly": alter(topic, "segment.bytes", "x"),
        "set of a broker wrongly": alter(broker, "num.partitions", "9"),
        "append to no list": alter(topic, "segment.bytes", "1", AlterConfigOpType.APPEND),
        "describe topic": changed,
        "describe broker": lambda: described(broker, *BROKERS_CONFIGS),
        "earliest": lambda: offsets(OffsetSpec.earliest()),
        "latest": lambda: offsets(OffsetSpec.latest()),
        "elect": elected,
        "delete records": lambda: done(admin.delete_records([TopicPartition(TOPIC, 0, 1)])).low_watermark,
        "delete records beyond the end": lambda: (
            done(admin.delete_records([TopicPartition(TOPIC, 0, 99)])).low_watermark
        ),
        "delete": lambda: done(admin.delete_topics(["c"])),
        "delete what is not there": lambda: done(admin.delete_topics(["nowhere"])),
    }


def test_confluent(sides: tuple[Side, Side]) -> None:
    """
    The client is confluent-kafka, and so librdkafka.
    """
    kafka, gateway = (outcomes(confluent(side)) for side in sides)
    assert_same(kafka, gateway)
    assert gateway["create again"]["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS
    assert gateway["describe topic"]["segment.bytes"]


def kafkapython(side: Side) -> Calls:
    admin = KafkaAdminClient(bootstrap_servers=side.bootstrap)
    kinds = ConfigResourceType
    places = [Place(*place) for place in PLACES]

    def described(kind: Any, name: str, *keys: str) -> Any:
        [found] = admin.describe_configs([KafkaResource(kind, name)], config_filter="all").values()
        return {key: found[name][key] for key in keys}

    def changed() -> Any:
        return until(
            lambda: described(kinds.TOPIC, "k", *CONFIGS), lambda found: found["segment.bytes"]["value"] == "2000000"
        )

    def alter(kind: Any, name: str, **values: str) -> Callable[[], Any]:
        given = {key.replace("_", "."): value for key, value in values.items()}
        return lambda: admin.alter_configs([KafkaResource(kind, name, given)], raise_on_unknown=False)

    def created() -> Any:
        answer = admin.create_topics({"k": {"num_partitions": 2, "configs": {"retention.ms": "77000"}}})
        [topic] = answer["topics"]
        topic["configs"] = {key: topic["configs"][key] for key in CONFIGS}  # EXTRA has the reasons of the others
        return answer

    def log_dirs() -> Any:
        [found] = admin.describe_log_dirs(topic_partitions={TOPIC: [0, 1]})
        [place] = found["results"] if "results" in found else found["log_dirs"]
        return place["topics"]

    return {
        "create": created,
        "create again": lambda: admin.create_topics({"k": {"num_partitions": 2}}),
        "create wrongly": lambda: admin.create_topics({"l": {"num_partitions": 2, "configs": {"nope": "1"}}}),
        "grow": lambda: admin.create_partitions({"k": 3}),
        "shrink": lambda: admin.create_partitions({"k": 2}),
        "set": alter(kinds.TOPIC, "k", segment_bytes="2000000"),
        "set wrongly": alter(kinds.TOPIC, "k", segment_bytes="x"),
        "set of a broker wrongly": alter(kinds.BROKER, "1", num_partitions="9"),
        "describe topic": changed,
        "describe broker": lambda: described(kinds.BROKER, "1", *BROKERS_CONFIGS),
        "log dirs": log_dirs,
        "elect": lambda: admin.elect_leaders(_PREFERRED, {TOPIC: [0, 1]}, raise_errors=False),
        "reassign": lambda: admin.alter_partition_reassignments({place: [1] for place in places}),
        "reassign to nobody": lambda: admin.alter_partition_reassignments({places[0]: [7]}),
        "reassignments": admin.list_partition_reassignments,
        "producers": lambda: admin.describe_producers(places),
        "delete records": lambda: admin.delete_records({places[0]: 1}),
        "delete records beyond the end": lambda: admin.delete_records({places[0]: 99}),
        "delete": lambda: admin.delete_topics(["k"]),
        "delete what is not there": lambda: admin.delete_topics(["nowhere"]),
        "quorum": lambda: bool(admin.describe_metadata_quorum()),
        "close": admin.close,
    }


def test_kafkapython(sides: tuple[Side, Side]) -> None:
    kafka, gateway = (outcomes(kafkapython(side)) for side in sides)
    assert (kafka.pop("quorum"), gateway.pop("quorum")) == (True, "UnsupportedVersionError"), why.NO_QUORUM
    assert_same(kafka, gateway)
    assert gateway["create again"] == "TopicAlreadyExistsError"


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    """
    The program of franz-go, which the environment has built.
    """
    with Program(["franz-go-client"]) as program:
        yield program


def test_franz_go(program: Program, sides: tuple[Side, Side]) -> None:
    """
    The client is franz-go's kadm.
    """
    kafka, gateway = (program.ask("administer", bootstrap=side.bootstrap, topic=TOPIC) for side in sides)
    assert kafka == gateway
    assert "TOPIC_ALREADY_EXISTS" in str(gateway["create topics"])
