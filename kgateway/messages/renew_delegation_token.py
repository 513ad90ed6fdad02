"""
RenewDelegationToken: extends the lifetime of a token, up to its maximum (KIP-48).

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32, i64


class RenewDelegationTokenRequest(Message, key=39, versions="0-2", flexible="2+"):
    """
    Names a token by its HMAC and how long it is to live from now.
    """

    hmac: bytes
    renew_period_ms: i64  # from now; -1: the server's default


class RenewDelegationTokenResponse(Message, key=39, versions="0-2", flexible="2+"):
    error_code: i16
    expiry_timestamp_ms: i64
    throttle_time_ms: i32
