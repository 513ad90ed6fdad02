"""
DescribeConfigs: the configs of topics, of consumer groups and of this gateway, and the level of its log.

 - v1: config_source; synonyms, on request
 - v3: config_type; documentation, on request

Of a broker, those of Kafka's configs are shown that mean something here. Clients ask each broker for its own. A group
has configs whether it exists or not: they remain after it, and can be set before its first member joins.
"""

from kgateway.admin.config_alteration import NO_METRICS
from kgateway.admin.log_levels import ProcessLog
from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.config_description import (
    ConfigEntry,
    ConfigSources,
    broker_configs,
    group_configs,
    logger_configs,
    shared_configs,
    topic_configs,
)
from kgateway.cluster.config_resource import ResourceType, group
from kgateway.cluster.config_rows import brief
from kgateway.cluster.names import no_such_topic
from kgateway.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    versions="1-4",
    needs=(
        Operation.DESCRIBE_CONFIGS.on(Resource.TOPIC),
        Operation.DESCRIBE_CONFIGS.on(Resource.CLUSTER),
        Operation.DESCRIBE_CONFIGS.on(Resource.GROUP),
    ),
)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        result = DescribeConfigsResponse.Result(
            error_code=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[],
        )
        try:
            wanted = resource.configuration_keys
            found = [config for config in _configs(resource, context) if not wanted or config.name in wanted]
            result.configs = [_config(config, request) for config in found]
        except KafkaError as error:
            result.error_code, result.error_message = context.refuse(error, resource.resource_name), error.message
        results.append(result)
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


def _configs(resource: DescribeConfigsRequest.Resource, context: Context) -> list[ConfigEntry]:
    if resource.resource_type == ResourceType.CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, NO_METRICS)
    if resource.resource_type not in _KINDS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    return _KINDS[ResourceType(resource.resource_type)](resource.resource_name, context)


def _of_topic(name: str, context: Context) -> list[ConfigEntry]:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name)
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise no_such_topic(name)
    return topic_configs(topic.config, _sources(context))


def _of_broker(node: str, context: Context) -> list[ConfigEntry]:
    """
    The configs of this gateway; without a name, those that were set at run time for all.
    """
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    if not node:
        return shared_configs(context.broker.view().overrides)
    _check_broker(node, f"expected {context.broker.node_id} or empty string,", context)
    return broker_configs(_sources(context))


def _of_logger(node: str, context: Context) -> list[ConfigEntry]:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    if not node:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    _check_broker(node, f"expected {context.broker.node_id}", context)
    return logger_configs(context.service(ProcessLog).described())


def _check_broker(node: str, expected: str, context: Context) -> None:
    """
    Refuse the name of another gateway, whose configs are not known here.
    """
    try:
        is_this = int(node) == context.broker.node_id
    except ValueError:
        wrong = f"Broker id must be an integer, but it is: {brief(node)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong) from None
    if not is_this:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, {expected} but received {brief(node)}")


def _of_group(group_id: str, context: Context) -> list[ConfigEntry]:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return group_configs(context.broker.view().overrides_of(group(group_id)), _sources(context))


def _sources(context: Context) -> ConfigSources:
    return ConfigSources(context.settings, context.broker.view().overrides, context.broker.log_dir)


_KINDS = {
    ResourceType.TOPIC: _of_topic,
    ResourceType.BROKER: _of_broker,
    ResourceType.BROKER_LOGGER: _of_logger,
    ResourceType.GROUP: _of_group,
}


def _config(config: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResponse.Result.Config:
    shown = config.synonyms if request.include_synonyms else ()
    return DescribeConfigsResponse.Result.Config(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=False,
        synonyms=[
            DescribeConfigsResponse.Result.Config.Synonym(name=name, value=value, source=source)
            for name, value, source in shown
        ],
        config_type=config.type,
        documentation=config.meaning if request.include_documentation else None,
    )
