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
    4: "set at start",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
_DEFAULT = 5


class AlterOperation(IntEnum):
    SET = 0
    UNSET = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """
    A config. Servers do not send the values of secrets.
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
        return self.source != _SOURCES[_DEFAULT]


def describe_configs(
    cluster: Cluster, resources: Sequence[ConfigResource], names: Iterable[str] | None = None, documented: bool = False
) -> dict[ConfigResource, list[ConfigEntry]]:
    """
    The configs of each resource, sorted by name: all, or only the named ones. All resources of one call must have the
    same server, because a broker is asked for its own configs.
    """
    keys = None if names is None else [*names]
    kind = DescribeConfigsRequest.Resource
    asked = [kind(resource_type=KINDS[one.kind], resource_name=one.name, configuration_keys=keys) for one in resources]
    request = DescribeConfigsRequest(resources=asked, include_synonyms=True, include_documentation=documented)
    answer = _responsible(cluster, resources[0]).ask(request, DescribeConfigsResponse) if resources else None
    kinds = {number: kind for kind, number in KINDS.items()}
    found: dict[ConfigResource, list[ConfigEntry]] = {}
    for result in answer.results if answer else []:
        refuse(result.error_code, result.error_message)
        resource = ConfigResource(kinds[result.resource_type], result.resource_name)
        found[resource] = sorted(map(_config, result.configs), key=lambda config: config.name)
    return found


def alter_configs(
    cluster: Cluster, resource: ConfigResource, change: AlterOperation, values: Mapping[str, str | None], dry_run: bool
) -> None:
    """
    Change configs of one resource; if one is refused, none changes. A dry run only validates.
    """
    kind = IncrementalAlterConfigsRequest.Resource
    configs = [kind.Config(name=name, config_operation=change, value=value) for name, value in values.items()]
    asked = kind(resource_type=KINDS[resource.kind], resource_name=resource.name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=dry_run)
    [found] = _responsible(cluster, resource).ask(request, IncrementalAlterConfigsResponse).responses
    refuse(found.error_code, found.error_message)


def _responsible(cluster: Cluster, resource: ConfigResource) -> Connection:
    """
    A broker has to be asked for its own configs; any server knows the others.
    """
    if resource.kind != _BROKER:
        return cluster.any_server()
    nodes = {str(node.id): node for node in cluster.nodes()}
    if resource.name not in nodes:
        known = ", ".join(nodes)
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {resource.name}; there are: {known}")
    return cluster.connection(nodes[resource.name])


def _config(found: DescribeConfigsResponse.Result.Config) -> ConfigEntry:
    defaults = [synonym.value for synonym in found.synonyms if synonym.source == _DEFAULT]
    is_default = found.is_default or found.config_source == _DEFAULT
    source = _SOURCES[_DEFAULT] if is_default else _SOURCES.get(found.config_source, "set")
    return ConfigEntry(
        found.name,
        found.value,
        source,
        defaults[0] if defaults else (found.value if is_default else None),
        found.read_only,
        found.is_sensitive,
        found.documentation,
    )
