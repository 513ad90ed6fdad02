"""
The log level of a process, as Kafka's clients see and change it.
"""

from typing import Any

from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import Client

LOGGER, SET = 8, 0


def described(client: Client) -> tuple[str, str]:
    """
    The logger and its level.
    """
    wanted = DescribeConfigsRequest.Resource(resource_type=LOGGER, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=False, include_documentation=False)
    [result] = client.ask(request, 4).results
    [config] = result.configs
    return config.name, config.value


def alter(client: Client, level: str) -> Any:
    """
    Set the level and return the error code.
    """
    config = IncrementalAlterConfigsRequest.Resource.Config(name="root", config_operation=SET, value=level)
    wanted = IncrementalAlterConfigsRequest.Resource(resource_type=LOGGER, resource_name="1", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False)
    return client.ask(request, 1).responses[0].error_code


def test_clients_change_the_level_of_the_process() -> None:
    """
    At first they see the one it was started with.
    """
    with Kafka("--broker", "memory:", "--log-level", "warn") as kafka, Client(kafka.port) as client:
        assert described(client) == ("root", "WARN")
        assert alter(client, "DEBUG") == 0
        assert described(client) == ("root", "DEBUG")
