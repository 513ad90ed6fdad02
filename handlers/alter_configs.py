"""
AlterConfigs: sets all configs of topics, of brokers and of consumer groups; those that are not named get their default.
Newer clients change single configs, with IncrementalAlterConfigs.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.admin.config_alteration import NEEDS, ResourceAlteration, alter
from kgateway.api import Context, api
from kgateway.cluster.config_changes import AlterConfigOp, OpType
from kgateway.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@api(AlterConfigsRequest, AlterConfigsResponse, versions="0-2", needs=NEEDS)
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    alterations = [_alteration(resource) for resource in request.resources]
    return await alter(alterations, request.validate_only, AlterConfigsResponse, context)


def _alteration(resource: AlterConfigsRequest.Resource) -> ResourceAlteration:
    ops = [AlterConfigOp(config.name, OpType.SET, config.value) for config in resource.configs]
    return ResourceAlteration(resource.resource_type, resource.resource_name, ops, is_whole=True)
