"""
RenewDelegationToken: refused, because there are no delegation tokens.

 - v2: flexible
"""

from typing import NoReturn

from kgateway.api import Context, api
from kgateway.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    versions="1-2",
    needs=Free("the token itself says by whom it may be renewed"),
)
def renew_delegation_token(request: RenewDelegationTokenRequest, context: Context) -> NoReturn:
    reason = "no token can be renewed: delegation tokens are not served"
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, reason)
