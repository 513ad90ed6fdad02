"""
ApiVersions: lists the APIs and versions that the broker supports.

 - v0: also the form of the answer to a version the broker does not know (KIP-511)
 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: flexible, except the response header; the client's name (KIP-511), features (KIP-584)
 - v4: features whose minimum is 0 are no longer left out (KAFKA-17011)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class ApiVersionsRequest(Message, key=18, versions="0-4", flexible="3+"):
    """
    Usually the first request on a connection.
    """

    client_software_name: str = v("3+")  # letters, digits, . and -; else INVALID_REQUEST
    client_software_version: str = v("3+")  # the same letters as the name


class ApiVersionsResponse(Message, key=18, versions="0-4", flexible="3+"):
    class ApiKey(Struct):
        api_key: i16
        min_version: i16
        max_version: i16

    class SupportedFeature(Struct):
        name: str
        min_version: i16
        max_version: i16

    class FinalizedFeature(Struct):
        name: str
        max_version_level: i16
        min_version_level: i16

    error_code: i16
    api_keys: list[ApiKey]
    throttle_time_ms: i32 = v("1+")
    supported_features: list[SupportedFeature] = v("3+", tag=0)  # what this broker could do
    finalized_features_epoch: i64 = v("3+", default=-1, tag=1)  # -1: finalized_features is not known
    finalized_features: list[FinalizedFeature] = v("3+", tag=2)  # what the cluster has switched on
    zk_migration_ready: bool = v("3+", default=False, tag=3)  # from KRaft controllers, before Kafka 4.0 (KIP-866)
