"""
ApiVersions: which versions of which APIs this gateway serves, and which features the cluster has.

 - v0: the dispatcher answers versions that are not served in this form too
 - v1: throttle_time_ms
 - v3: the client names its software; features
 - v4: features whose minimum is 0 are included; older clients cannot read those (KAFKA-17492)
"""

import re

from kgateway.admin.features import finalized, supported
from kgateway.api import Context, api
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError

_FROM_ZERO = 4  # the first version whose clients can read a minimum of 0
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(
    ApiVersionsRequest,
    ApiVersionsResponse,
    versions="0-4",
    needs=Free("a client asks this first, before it says who it is"),
)
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.version >= 3:
        _remember_software(request, context)
    view = context.broker.view()
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=[
            ApiVersionsResponse.ApiKey(api_key=key, min_version=versions[0], max_version=versions[-1])
            for key, (versions, _) in context.served.items()
        ],
        supported_features=_supported(context),
        finalized_features_epoch=view.epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeature(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized(context).items()
            if level  # a feature at level 0 is off
        ],
    )


def _remember_software(request: ApiVersionsRequest, context: Context) -> None:
    for name in ("client_software_name", "client_software_version"):
        value = getattr(request, name)
        if not _SOFTWARE.fullmatch(value):
            allowed = "it must be letters, digits, . and -, with a letter or digit at both ends"
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is {value!r}: {allowed}")
    context.session.software = request.client_software_name
    context.session.software_version = request.client_software_version


def _supported(context: Context) -> list[ApiVersionsResponse.SupportedFeature]:
    return [
        ApiVersionsResponse.SupportedFeature(name=name, min_version=feature.lowest, max_version=feature.highest)
        for name, feature in supported(context).items()
        if feature.lowest or context.version >= _FROM_ZERO
    ]
