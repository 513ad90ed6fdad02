"""
UpdateFeatures: raises and lowers the levels of features. The request is checked as in Kafka; the only possible levels
are the present ones (kgateway/admin/features.py).

 - v1: upgrade_type in place of allow_downgrade, validate_only (KIP-778)
 - v2: all or nothing, so results is gone and the error is at the top (KIP-1022)
"""

from kgateway.admin.features import finalized, supported
from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kgateway.wire.errors import ErrorCode, KafkaError

Update = UpdateFeaturesRequest.FeatureUpdate

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_TYPES = (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)


@api(UpdateFeaturesRequest, UpdateFeaturesResponse, versions="0-2", needs=Operation.ALTER.on(Resource.CLUSTER))
def update_features(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    for update in request.feature_updates:
        refusal = _refusal(update, context)
        if refusal:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: Invalid update version "
                f"{update.max_version_level} for feature {update.feature}. {refusal}",
            )
    return UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        results=[
            UpdateFeaturesResponse.Result(feature=update.feature, error_code=ErrorCode.NONE, error_message=None)
            for update in request.feature_updates
        ],
    )


def _refusal(update: Update, context: Context) -> str | None:
    """
    Why the feature cannot have this level; `None` if it has it already.
    """
    name, level, kind = update.feature, update.max_version_level, _kind(update, context)
    feature, now = supported(context).get(name), finalized(context).get(name, 0)
    if kind not in _TYPES:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if feature is None:
        unsupported = f"Local controller {context.broker.node_id} does not support this feature."
        return unsupported if level else f"Feature {name} not found."
    if not feature.lowest <= level <= feature.highest:
        levels = f"{feature.lowest}-{feature.highest}"
        return f"Local controller {context.broker.node_id} only supports versions {levels}"
    if level < now and kind == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    return None if level == now else f"It is {now} in this gateway, and cannot be changed."


def _kind(update: Update, context: Context) -> int:
    if context.version == 0:
        return _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    return update.upgrade_type
