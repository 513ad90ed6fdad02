"""
UnregisterBroker: removes a broker from the cluster.
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32


class UnregisterBrokerRequest(Message, key=64, versions="0", flexible="0+"):
    broker_id: i32


class UnregisterBrokerResponse(Message, key=64, versions="0", flexible="0+"):
    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
