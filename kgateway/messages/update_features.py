"""
UpdateFeatures: raises and lowers the finalized feature levels of the cluster (KIP-584).

 - v1: upgrade_type in place of allow_downgrade, validate_only (KIP-778)
 - v2: all or nothing: results is gone, the error stands at the top (KIP-1022)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class UpdateFeaturesRequest(Message, key=57, versions="0-2", flexible="0+"):
    class FeatureUpdate(Struct):
        feature: str
        max_version_level: i16  # below 1: deletes the feature
        allow_downgrade: bool = v("0")  # a deletion needs it too
        upgrade_type: i8 = v("1+", default=1)  # 1 upgrade; downgrade: 2 lossless, 3 lossy

    timeout_ms: i32 = v(default=60000)
    feature_updates: list[FeatureUpdate]
    validate_only: bool = v("1+")


class UpdateFeaturesResponse(Message, key=57, versions="0-2", flexible="0+"):
    """
    The outcome; up to v1 also one for each feature.
    """

    class Result(Struct):
        feature: str
        error_code: i16
        error_message: str | None

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
    results: list[Result] = v("0-1")
