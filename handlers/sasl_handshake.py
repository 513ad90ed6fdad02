"""
SaslHandshake: refused, because no listener has authentication; Kafka does the same.

 - v1: the tokens would follow in SaslAuthenticate
"""

from typing import NoReturn

from kgateway.api import Context, api
from kgateway.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(SaslHandshakeRequest, SaslHandshakeResponse, versions="0-1", needs=Free("a client asks this to say who it is"))
def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> NoReturn:
    reason = f"mechanism {request.mechanism} cannot be used: listener {context.session.listener} has no authentication"
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, reason)
