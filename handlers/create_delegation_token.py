"""
CreateDelegationToken: refused, because there are no delegation tokens.

 - v2: flexible
 - v3: the token may be for someone else
"""

from typing import NoReturn

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    versions="1-3",
    needs=Operation.CREATE_TOKENS.on(Resource.USER),
)
def create_delegation_token(request: CreateDelegationTokenRequest, context: Context) -> NoReturn:
    sender, owner = context.session.principal, _owner(request, context)
    if owner != sender and not context.allowed(Operation.CREATE_TOKENS, Resource.USER, owner):
        reason = f"{sender} may not create tokens for {owner}"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, reason)
    reason = f"no token can be created for {owner}: delegation tokens are not served"
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, reason)


def _owner(request: CreateDelegationTokenRequest, context: Context) -> str:
    if not request.owner_principal_name:
        return context.session.principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"
