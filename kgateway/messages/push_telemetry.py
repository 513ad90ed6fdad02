"""
PushTelemetry: a client delivers the metrics it was asked for (KIP-714).
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i8, i16, i32
from kgateway.wire.uuids import Uuid


class PushTelemetryRequest(Message, key=72, versions="0", flexible="0+"):
    """
    One push of metrics, under the subscription the client was given.
    """

    client_instance_id: Uuid
    subscription_id: i32  # of GetTelemetrySubscriptions; a stale one is refused
    terminating: bool  # the last push, off schedule
    compression_type: i8  # 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    metrics: bytes  # OpenTelemetry MetricsData v1 in protobuf


class PushTelemetryResponse(Message, key=72, versions="0", flexible="0+"):
    """
    Whether the push was taken.
    """

    throttle_time_ms: i32
    error_code: i16
