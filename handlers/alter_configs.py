"""
AlterConfigs: sets all configs of topics, of brokers and of consumer groups; what is not named has its default again.
Newer clients ask for single changes, with IncrementalAlterConfigs.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.alterations import Asked, outcomes
from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.altering import Alteration, Wish
from kgateway.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    versions="0-2",
    needs=(
        Operation.ALTER_CONFIGS.on(Resource.TOPIC),
        Operation.ALTER_CONFIGS.on(Resource.CLUSTER),
        Operation.ALTER_CONFIGS.on(Resource.GROUP),
    ),
)
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    made = await outcomes([_asked(resource) for resource in request.resources], request.validate_only, context)
    return AlterConfigsResponse(
        throttle_time_ms=0,
        responses=[
            AlterConfigsResponse.Response(
                error_code=outcome.error_code,
                error_message=outcome.error_message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
            for asked, outcome in zip(request.resources, made, strict=True)
        ],
    )


def _asked(resource: AlterConfigsRequest.Resource) -> Asked:
    wishes = [Wish(config.name, Alteration.SET, config.value) for config in resource.configs]
    return Asked(resource.resource_type, resource.resource_name, wishes, is_whole=True)
