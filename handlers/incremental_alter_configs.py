"""
IncrementalAlterConfigs: sets and deletes single configs of topics, of brokers and of consumer groups, and adds to those
that are lists, or takes from them. It sets the level of a gateway's log, too.

 - v1: flexible
"""

from kgateway.alterations import Asked, outcomes
from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.altering import Wish
from kgateway.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    versions="0-1",
    needs=(
        Operation.ALTER_CONFIGS.on(Resource.TOPIC),
        Operation.ALTER_CONFIGS.on(Resource.CLUSTER),
        Operation.ALTER_CONFIGS.on(Resource.GROUP),
    ),
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    made = await outcomes([_asked(resource) for resource in request.resources], request.validate_only, context)
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=0,
        responses=[
            IncrementalAlterConfigsResponse.Response(
                error_code=outcome.error_code,
                error_message=outcome.error_message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
            for asked, outcome in zip(request.resources, made, strict=True)
        ],
    )


def _asked(resource: IncrementalAlterConfigsRequest.Resource) -> Asked:
    wishes = [Wish(config.name, config.config_operation, config.value) for config in resource.configs]
    return Asked(resource.resource_type, resource.resource_name, wishes)
