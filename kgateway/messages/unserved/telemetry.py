"""
GetTelemetrySubscriptions: tells a client which metrics to push, and how and how often to push them (KIP-714).

PushTelemetry: pushes the metrics of a client (KIP-714).
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i8, i16, i32
from kgateway.wire.uuids import Uuid


class GetTelemetrySubscriptionsRequest(Message, key=71, versions="0", flexible="0+"):
    client_instance_id: Uuid  # zero the first time


class GetTelemetrySubscriptionsResponse(Message, key=71, versions="0", flexible="0+"):
    throttle_time_ms: i32
    error_code: i16
    client_instance_id: Uuid  # a new one, if the request had zero
    subscription_id: i32
    accepted_compression_types: list[i8]  # 1 gzip, 2 snappy, 3 lz4, 4 zstd; best first
    push_interval_ms: i32
    telemetry_max_bytes: i32
    delta_temporality: bool  # true: deltas, false: totals since the start
    requested_metrics: list[str]  # name prefixes; an empty name: all, no name: none


class PushTelemetryRequest(Message, key=72, versions="0", flexible="0+"):
    client_instance_id: Uuid
    subscription_id: i32  # of GetTelemetrySubscriptions; a stale one is refused
    terminating: bool  # the last push, off schedule
    compression_type: i8  # 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    metrics: bytes  # OpenTelemetry MetricsData v1 in protobuf


class PushTelemetryResponse(Message, key=72, versions="0", flexible="0+"):
    throttle_time_ms: i32
    error_code: i16
