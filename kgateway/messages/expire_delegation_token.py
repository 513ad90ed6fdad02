"""
ExpireDelegationToken: sets the expiry of a token, or expires it at once (KIP-48).

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32, i64


class ExpireDelegationTokenRequest(Message, key=40, versions="0-2", flexible="2+"):
    """
    Names a token by its HMAC and the time left to it.
    """

    hmac: bytes
    expiry_time_period_ms: i64  # from now; negative: ends at once


class ExpireDelegationTokenResponse(Message, key=40, versions="0-2", flexible="2+"):
    error_code: i16
    expiry_timestamp_ms: i64  # the negative period, if it ended at once
    throttle_time_ms: i32
