"""
SaslHandshake: negotiates a SASL mechanism.

 - v0: the SASL tokens follow bare, each behind its i32 length
 - v1: the tokens follow in SaslAuthenticate (KIP-152); never flexible (KAFKA-9577)
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16


class SaslHandshakeRequest(Message, key=17, versions="0-1"):
    mechanism: str  # as registered: PLAIN, SCRAM-SHA-256, ...


class SaslHandshakeResponse(Message, key=17, versions="0-1"):
    error_code: i16
    mechanisms: list[str]  # sent with and without an error
