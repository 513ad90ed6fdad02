"""
A standby serves clients, too: it shows the leader, and forwards changes to it. All requests here go to the standby.
"""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.interfaces import PEER
from kgateway.messages.alter_configs import AlterConfigsRequest
from kgateway.messages.create_partitions import CreatePartitionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.find_coordinator import FindCoordinatorRequest
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.messages.list_groups import ListGroupsRequest
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode
from tests.faults.client import Client
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.gateway_pair import Pair, until
from tests.faults.seaweedmq.kafka_requests import NOT_YET, produce, produce_until_taken

_TOPIC, _BROKER, _GROUP = 2, 4, 32  # kinds of resources
_SET, _DELETE, _APPEND = 0, 1, 2
_CREATE_VERSION, _DELETE_VERSION = 7, 5


@pytest.fixture(scope="module")
def pair(cluster: DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(cluster, tmp_path_factory.mktemp("pair"), f"waiting-{uuid4().hex[:8]}")
    try:
        yield found
    finally:
        found.end()


@pytest.fixture
def client(pair: Pair) -> Iterator[Client]:
    with Client(pair.second.port) as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"t-{uuid4().hex[:8]}"


def created(client: Client, name: str, **configs: str) -> tuple[ErrorCode, str | None]:
    """
    Create a topic with one partition. Returns the answer.
    """
    asked = new_topic(name, 1, {key.replace("_", "."): configs[key] for key in configs})
    [told] = client.ask(CreateTopicsRequest(topics=[asked]), _CREATE_VERSION).topics
    return ErrorCode(told.error_code), told.error_message


def new_topic(name: str, partition_count: int, configs: dict[str, str]) -> CreateTopicsRequest.Topic:
    rows = [CreateTopicsRequest.Topic.Config(name=key, value=configs[key]) for key in configs]
    return CreateTopicsRequest.Topic(
        name=name, num_partitions=partition_count, replication_factor=-1, assignments=[], configs=rows
    )


def partitions(gateway: Gateway, name: str) -> int:
    """
    How many partitions a topic has, if it exists.
    """
    asked = [MetadataRequest.Topic(name=name)]
    with Client(gateway.port) as client:
        told: MetadataResponse = client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9)
    return len(told.topics[0].partitions)


def altered(
    client: Client, kind: int, name: str, *rows: tuple[str, int, str | None], validate_only: bool = False
) -> ErrorCode:
    """
    Set or delete configs. Returns the answer.
    """
    config = IncrementalAlterConfigsRequest.Resource.Config
    configs = [config(name=key, config_operation=operation, value=value) for key, operation, value in rows]
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    [told] = client.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=validate_only), 1).responses
    return ErrorCode(told.error_code)


def config(gateway: Gateway, kind: int, name: str, key: str) -> str | None:
    asked = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=[key])
    with Client(gateway.port) as client:
        [told] = client.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    return str(told.configs[0].value)


def until_config(pair: Pair, kind: int, name: str, key: str, value: str) -> None:
    """
    Wait until both gateways show this config.
    """
    for gateway in (pair.first, pair.second):
        until(lambda: config(gateway, kind, name, key) == value)  # noqa: B023  # it is over at once


def test_it_sends_clients_to_the_leader(pair: Pair, client: Client) -> None:
    """
    It does so for records and for groups.
    """
    told = client.ask(MetadataRequest(topics=None), 12)
    assert {(each.node_id, each.port) for each in told.brokers} == {(1, pair.first.port), (2, pair.second.port)}
    assert told.controller_id == 1
    assert {part.leader_id for topic in told.topics for part in topic.partitions} == {1}
    assert produce(client, pair.place, b"astray") == NOT_YET
    coordinator = client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    assert (coordinator.error_code, coordinator.node_id, coordinator.port) == (0, 1, pair.first.port)
    with Client(pair.first.port) as first:
        first.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    until(lambda: partitions(pair.second, STATE_TOPICS[Resource.GROUP]) > 0)
    groups = client.ask(ListGroupsRequest(states_filter=[], types_filter=[]), 4)
    assert (groups.error_code, groups.groups) == (ErrorCode.NONE, [])


def test_it_has_topics_made_and_removed(pair: Pair, client: Client, name: str) -> None:
    """
    Both gateways know the new state at once.
    """
    assert created(client, name, seaweedmq_format="batch", retention_ms="86400000") == (ErrorCode.NONE, None)
    assert partitions(pair.second, name) == partitions(pair.first, name) == 1
    with Client(pair.first.port) as first:
        produce_until_taken(first, (name, 0), b"value")
    asked = CreatePartitionsRequest.Topic(name=name, count=3, assignments=None)
    [grown] = client.ask(CreatePartitionsRequest(topics=[asked], timeout_ms=9_000, validate_only=False), 3).results
    assert (grown.error_code, grown.error_message) == (ErrorCode.NONE, None)
    assert partitions(pair.second, name) == partitions(pair.first, name) == 3
    assert config(pair.second, _TOPIC, name, "retention.ms") == "86400000"
    [gone] = client.ask(DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=9_000), _DELETE_VERSION).responses
    assert (gone.error_code, gone.error_message) == (ErrorCode.NONE, None)
    assert partitions(pair.second, name) == partitions(pair.first, name) == 0


def test_the_leader_says_why_not(client: Client, name: str) -> None:
    """
    The error has the leader's words.
    """
    code, reason = created(client, name, seaweedmq_format="record", compression_type="zstd")
    assert code == ErrorCode.INVALID_CONFIG
    assert reason == "a topic of the format record stores single records: compression.type can only be producer"


@pytest.mark.parametrize("validate_only", [True, False])
def test_what_cannot_be_is_refused_to_who_only_asks_too(
    pair: Pair, client: Client, name: str, validate_only: bool
) -> None:
    """
    Both gateways refuse a validation in the same words.
    """
    plain = {"seaweedmq.format": "plain", "message.timestamp.type": "CreateTime"}
    zstd = {"seaweedmq.format": "record", "compression.type": "zstd"}
    wanted = [
        (new_topic(f"{name}-record", 1, zstd), ErrorCode.INVALID_CONFIG),
        (new_topic(f"{name}-plain", 1, plain), ErrorCode.INVALID_CONFIG),
        (new_topic(f"{name}-many", 2521, {}), ErrorCode.INVALID_PARTITIONS),
        (new_topic(f".{name}", 1, {}), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("__transaction_state", 1, {}), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    there, told = f"{name}-there", []
    assert created(client, there, seaweedmq_format="record") == (ErrorCode.NONE, None)
    growth = CreatePartitionsRequest.Topic(name=there, count=2521, assignments=None)
    for gateway in (pair.first, pair.second):
        until(lambda: partitions(gateway, there) == 1)  # noqa: B023  # it is over at once
        with Client(gateway.port) as asking:
            topics = [topic for topic, _ in wanted]
            made = asking.ask(CreateTopicsRequest(topics=topics, validate_only=validate_only), _CREATE_VERSION).topics
            request = CreatePartitionsRequest(topics=[growth], timeout_ms=9_000, validate_only=validate_only)
            [grown] = asking.ask(request, 3).results
            told.append([*made, grown])
            compressed = "compression.type", _SET, "zstd"
            assert altered(asking, _TOPIC, there, compressed, validate_only=validate_only) == ErrorCode.INVALID_CONFIG
    assert [each.error_code for each in told[0]] == [*(code for _, code in wanted), ErrorCode.INVALID_PARTITIONS]
    assert [each.error_message for each in told[0]] == [each.error_message for each in told[1]]


def test_it_has_configs_changed(pair: Pair, client: Client, name: str) -> None:
    """
    Configs of topics, groups and gateways change; those that were not named are kept.
    """
    assert created(client, name, retention_ms="86400000", max_message_bytes="2000")[0] == ErrorCode.NONE
    assert altered(client, _TOPIC, name, ("retention.ms", _DELETE, None), ("segment.ms", _SET, "3600000")) == 0
    until_config(pair, _TOPIC, name, "segment.ms", "3600000")
    until_config(pair, _TOPIC, name, "retention.ms", "604800000")
    until_config(pair, _TOPIC, name, "max.message.bytes", "2000")
    assert altered(client, _GROUP, name, ("consumer.session.timeout.ms", _SET, "50000")) == ErrorCode.NONE
    until_config(pair, _GROUP, name, "consumer.session.timeout.ms", "50000")
    assert altered(client, _BROKER, "2", ("log.retention.ms", _SET, "3600000")) == ErrorCode.NONE
    until(lambda: config(pair.second, _BROKER, "2", "log.retention.ms") == "3600000")
    assert config(pair.first, _BROKER, "1", "log.retention.ms") != "3600000"
    assert altered(client, _BROKER, "2", ("log.retention.ms", _DELETE, None)) == ErrorCode.NONE
    until(lambda: config(pair.second, _BROKER, "2", "log.retention.ms") == "604800000")
    assert altered(client, _BROKER, "3", ("log.retention.ms", _SET, "3600000")) == ErrorCode.INVALID_REQUEST


def test_configs_of_topics_that_are_not_seen_yet_are_changed(pair: Pair, client: Client, name: str) -> None:
    """
    The leader has just created the topics, and knows them.
    """
    with Client(pair.first.port) as leader:
        for number in range(10):
            assert created(leader, f"{name}-{number}") == (ErrorCode.NONE, None)
            assert altered(client, _TOPIC, f"{name}-{number}", ("retention.ms", _SET, "7200000")) == ErrorCode.NONE
    assert altered(client, _TOPIC, f"{name}-none", ("retention.ms", _SET, "1")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_follow_what_is_set_for_all_gateways(pair: Pair, client: Client, name: str) -> None:
    """
    Both gateways show the defaults.
    """
    assert created(client, name)[0] == ErrorCode.NONE
    assert altered(client, _BROKER, "", ("log.segment.bytes", _SET, "2000000")) == ErrorCode.NONE
    until_config(pair, _TOPIC, name, "segment.bytes", "2000000")
    assert altered(client, _BROKER, "", ("log.segment.bytes", _DELETE, None)) == ErrorCode.NONE
    until_config(pair, _TOPIC, name, "segment.bytes", "1073741824")


def test_the_leader_decides_what_configs_were_before(pair: Pair, client: Client, name: str) -> None:
    """
    It alone knows, because another administrator may have changed them a moment ago.
    """
    assert created(client, name, retention_ms="86400000")[0] == ErrorCode.NONE
    until(lambda: config(pair.first, _TOPIC, name, "retention.ms") == "86400000")
    with Client(pair.first.port) as first:
        for number in range(20):
            assert altered(first, _TOPIC, name, ("retention.ms", _SET, str(number))) == ErrorCode.NONE
            assert altered(client, _TOPIC, name, ("retention.ms", _SET, "86400000")) == ErrorCode.NONE
            assert config(pair.first, _TOPIC, name, "retention.ms") == "86400000"
        assert altered(first, _TOPIC, name, ("cleanup.policy", _SET, "compact")) == ErrorCode.NONE
        assert altered(client, _TOPIC, name, ("cleanup.policy", _APPEND, "delete")) == ErrorCode.NONE
    until_config(pair, _TOPIC, name, "cleanup.policy", "compact,delete")


@pytest.mark.parametrize("validate_only", [True, False])
def test_all_configs_of_a_topic_are_replaced(pair: Pair, client: Client, name: str, validate_only: bool) -> None:
    """
    AlterConfigs demands it; a validation changes nothing.
    """
    assert created(client, name, retention_ms="86400000")[0] == ErrorCode.NONE
    wished = [AlterConfigsRequest.Resource.Config(name="segment.ms", value="3600000")]
    asked = AlterConfigsRequest.Resource(resource_type=_TOPIC, resource_name=name, configs=wished)
    [told] = client.ask(AlterConfigsRequest(resources=[asked], validate_only=validate_only), 2).responses
    assert (told.error_code, told.error_message) == (ErrorCode.NONE, None)
    until_config(pair, _TOPIC, name, "segment.ms", "604800000" if validate_only else "3600000")
    until_config(pair, _TOPIC, name, "retention.ms", "86400000" if validate_only else "604800000")


def test_why_configs_are_not_changed_is_the_leaders_word(pair: Pair, client: Client, name: str) -> None:
    """
    Requests of a gateway are not forwarded again, because they might circulate.
    """
    assert created(client, name)[0] == ErrorCode.NONE
    assert altered(client, _TOPIC, name, ("retention.ms", _SET, "soon")) == ErrorCode.INVALID_CONFIG
    with Client(pair.second.port, client_id=PEER) as peer:
        assert altered(peer, _TOPIC, name, ("retention.ms", _SET, "1000")) == ErrorCode.NOT_CONTROLLER


def test_what_the_leader_has_changed_is_seen(pair: Pair, name: str) -> None:
    """
    The standby shows it soon.
    """
    with Client(pair.first.port) as first:
        assert created(first, name)[0] == ErrorCode.NONE
        until(lambda: partitions(pair.second, name) == 1)
        assert altered(first, _TOPIC, name, ("retention.ms", _SET, "1000")) == ErrorCode.NONE
        until(lambda: config(pair.second, _TOPIC, name, "retention.ms") == "1000")
        first.ask(DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=9_000), _DELETE_VERSION)
        until(lambda: partitions(pair.second, name) == 0)


def test_a_topic_comes_to_be_by_being_asked_for(pair: Pair, client: Client, name: str) -> None:
    """
    The leader does the same.
    """
    [told] = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=name)]), 9).topics
    assert told.error_code == ErrorCode.NONE
    assert partitions(pair.first, name) == len(told.partitions) > 0


def test_ids_of_producers_are_given_once(pair: Pair, client: Client) -> None:
    """
    Either gateway may give them.
    """
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    with Client(pair.first.port) as first:
        told = [each.ask(request, 4) for each in (client, first, client, first)]
    assert {answer.error_code for answer in told} == {ErrorCode.NONE}
    assert len({answer.producer_id for answer in told}) == len(told)
