"""
GetTelemetrySubscriptions: which metrics a client is to push, how and how often (KIP-714).
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i8, i16, i32
from kgateway.wire.uuids import Uuid


class GetTelemetrySubscriptionsRequest(Message, key=71, versions="0", flexible="0+"):
    """
    A client asks what to measure.
    """

    client_instance_id: Uuid  # zero the first time


class GetTelemetrySubscriptionsResponse(Message, key=71, versions="0", flexible="0+"):
    """
    The metrics wanted of this client, and the terms of pushing them.
    """

    throttle_time_ms: i32
    error_code: i16
    client_instance_id: Uuid  # a new one, if the request had zero
    subscription_id: i32
    accepted_compression_types: list[i8]  # 1 gzip, 2 snappy, 3 lz4, 4 zstd; best first
    push_interval_ms: i32
    telemetry_max_bytes: i32
    delta_temporality: bool  # true: deltas, false: totals since the start
    requested_metrics: list[str]  # name prefixes; an empty name: all, no name: none
