"""
Configs of topics, brokers and groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kgateway.client.cluster import Cluster, refuse
from kgateway.client.connection import Connection
from kgateway.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kgateway.wire.errors import ErrorCode, KafkaError

KINDS = {"topic": 2, "broker": 4, "group": 32}
_BROKER = "broker"
_SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "server's file",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
_DEFAULT = 5


class Change(IntEnum):
    """
    What is done to a config.
    """

    SET = 0
    UNSET = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """
    What has configs.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Config:
    """
    A config; the value of a secret is not told.
    """

    name: str
    value: str | None
    source: str
    default: str | None
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None

    @property
    def is_set(self) -> bool:
        """
        Whether somebody has set it.
        """
        return self.source != _SOURCES[_DEFAULT]


def described(
    cluster: Cluster, resources: Sequence[Resource], names: Iterable[str] | None = None, documented: bool = False
) -> dict[Resource, list[Config]]:
    """
    The configs of each, by name; all of them, or those that are named. Brokers are asked one at a time.
    """
    keys = None if names is None else [*names]
    kind = DescribeConfigsRequest.Resource
    asked = [kind(resource_type=KINDS[one.kind], resource_name=one.name, configuration_keys=keys) for one in resources]
    request = DescribeConfigsRequest(resources=asked, include_synonyms=True, include_documentation=documented)
    answer = _responsible(cluster, resources[0]).ask(request, DescribeConfigsResponse) if resources else None
    kinds = {number: kind for kind, number in KINDS.items()}
    told: dict[Resource, list[Config]] = {}
    for result in answer.results if answer else []:
        refuse(result.error_code, result.error_message)
        resource = Resource(kinds[result.resource_type], result.resource_name)
        told[resource] = sorted(map(_config, result.configs), key=lambda config: config.name)
    return told


def alter(
    cluster: Cluster, resource: Resource, change: Change, values: Mapping[str, str | None], dry_run: bool
) -> None:
    """
    Change some configs of one: all of them or, where one is refused, none. A dry run only asks whether it can be done.
    """
    kind = IncrementalAlterConfigsRequest.Resource
    configs = [kind.Config(name=name, config_operation=change, value=value) for name, value in values.items()]
    asked = kind(resource_type=KINDS[resource.kind], resource_name=resource.name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=dry_run)
    [told] = _responsible(cluster, resource).ask(request, IncrementalAlterConfigsResponse).responses
    refuse(told.error_code, told.error_message)


def _responsible(cluster: Cluster, resource: Resource) -> Connection:
    """
    A broker is asked itself; of the others any server knows.
    """
    if resource.kind != _BROKER:
        return cluster.anyone()
    nodes = {str(node.id): node for node in cluster.nodes()}
    if resource.name not in nodes:
        known = ", ".join(nodes)
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {resource.name}; there are: {known}")
    return cluster.connection(nodes[resource.name])


def _config(told: DescribeConfigsResponse.Result.Config) -> Config:
    defaults = [synonym.value for synonym in told.synonyms if synonym.source == _DEFAULT]
    is_default = told.is_default or told.config_source == _DEFAULT
    source = _SOURCES[_DEFAULT] if is_default else _SOURCES.get(told.config_source, "set")
    return Config(
        told.name,
        told.value,
        source,
        defaults[0] if defaults else (told.value if is_default else None),
        told.read_only,
        told.is_sensitive,
        told.documentation,
    )
