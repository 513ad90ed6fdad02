"""
ExpireDelegationToken: refused, because there are no delegation tokens.

 - v2: flexible
"""

from typing import NoReturn

from kgateway.api import Context, api
from kgateway.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    versions="1-2",
    needs=Free("the token itself says by whom it may be expired"),
)
def expire_delegation_token(request: ExpireDelegationTokenRequest, context: Context) -> NoReturn:
    reason = "no token can be expired: delegation tokens are not served"
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, reason)
