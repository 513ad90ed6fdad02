"""
IncrementalAlterConfigs: sets and deletes single configs of topics, of brokers and of consumer groups, and appends to
those that are lists, or subtracts from them. It also sets the log level of a gateway.

 - v1: flexible
"""

from kgateway.admin.config_alteration import NEEDS, ResourceAlteration, alter
from kgateway.api import Context, api
from kgateway.cluster.config_changes import AlterConfigOp
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


@api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, versions="0-1", needs=NEEDS)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    alterations = [_alteration(resource) for resource in request.resources]
    return await alter(alterations, request.validate_only, IncrementalAlterConfigsResponse, context)


def _alteration(resource: IncrementalAlterConfigsRequest.Resource) -> ResourceAlteration:
    ops = [AlterConfigOp(config.name, config.config_operation, config.value) for config in resource.configs]
    return ResourceAlteration(resource.resource_type, resource.resource_name, ops)
