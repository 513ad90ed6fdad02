"""
DescribeDelegationToken: refused, because there are no delegation tokens.

 - v2: flexible
 - v3: the requester of a token beside its owner
"""

from typing import NoReturn

from kgateway.api import Context, api
from kgateway.messages.describe_delegation_token import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    versions="1-3",
    needs=Free("permission is asked for each token found, and none is"),
)
def describe_delegation_token(request: DescribeDelegationTokenRequest, context: Context) -> NoReturn:
    reason = "no token can be described: delegation tokens are not served"
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, reason)
