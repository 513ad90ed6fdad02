"""
DescribeConfigs: the configs of topics, of consumer groups and of this gateway.

 - v1: config_source; synonyms, on request
 - v3: config_type; documentation, on request

Of a broker, Kafka's configs are shown that have a counterpart among the gateway's settings. They are those of the node
that is asked; clients ask each broker for its own. A group has configs whether it is there or not: they outlive it, and
can be set before its first member comes.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.config_resource import ConfigKind, group
from kgateway.cluster.described import Described, broker_configs, group_configs, topic_configs
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


def _configs(resource: DescribeConfigsRequest.Resource, context: Context) -> list[Described]:
    if resource.resource_type not in _KINDS:
        known = ", ".join(f"{kind.name} ({kind})" for kind in _KINDS)
        wrong = f"resources of type {resource.resource_type} have no configs here; those that have are {known}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
    return _KINDS[ConfigKind(resource.resource_type)](resource.resource_name, context)


def _of_topic(name: str, context: Context) -> list[Described]:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name)
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise no_such_topic(name)
    return topic_configs(topic.config, context.settings)


def _of_broker(node: str, context: Context) -> list[Described]:
    """
    What this gateway was started with; without a name, what all brokers were told at run time, which is nothing.
    """
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    if not node:
        return []
    if node != str(context.broker.node_id):
        wrong = f"Unexpected broker id, expected {context.broker.node_id} or empty string, but received {node[:20]}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
    return broker_configs(context.settings)


def _of_group(group_id: str, context: Context) -> list[Described]:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a group has an id; there are no configs for all groups at once")
    return group_configs(context.broker.view().overrides_of(group(group_id)), context.settings)


_KINDS = {ConfigKind.TOPIC: _of_topic, ConfigKind.BROKER: _of_broker, ConfigKind.GROUP: _of_group}


def _config(config: Described, request: DescribeConfigsRequest) -> DescribeConfigsResponse.Result.Config:
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
