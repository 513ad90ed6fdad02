"""
SaslAuthenticate: refused, because no handshake can have come before it.

 - v1: session_lifetime_ms
 - v2: flexible
"""

from typing import NoReturn

from kgateway.api import Context, api
from kgateway.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    versions="0-2",
    needs=Free("a client sends this to say who it is"),
)
def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> NoReturn:
    reason = f"SaslAuthenticate came without a handshake: listener {context.session.listener} has no authentication"
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, reason)
