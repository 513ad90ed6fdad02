"""
SaslAuthenticate: carries the messages of a SASL exchange.

 - v1: session_lifetime_ms (KIP-368)
 - v2: flexible
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i16, i64


class SaslAuthenticateRequest(Message, key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes  # laid out by the mechanism


class SaslAuthenticateResponse(Message, key=36, versions="0-2", flexible="2+"):
    error_code: i16
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: i64 = v("1+")  # authenticate again within this time; 0: no need
