"""
Delegation token requests to a gateway without tokens.
"""

import pytest
from twisted.trial.unittest import SynchronousTestCase

from kgateway.api import Handler, Operation, Resource
from kgateway.handlers.create_delegation_token import create_delegation_token
from kgateway.handlers.describe_delegation_token import describe_delegation_token
from kgateway.handlers.expire_delegation_token import expire_delegation_token
from kgateway.handlers.renew_delegation_token import renew_delegation_token
from kgateway.messages.create_delegation_token import CreateDelegationTokenRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from tests.server.test_answers import Sample
from tests.serving import Denying, Serving

TOKENS = {
    create_delegation_token: range(1, 4),
    renew_delegation_token: range(1, 3),
    expire_delegation_token: range(1, 3),
    describe_delegation_token: range(1, 4),
}


def _create_for(owner: str | None) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=owner and "User", owner_principal_name=owner, renewers=[], max_lifetime_ms=-1
    )


class DelegationTokenTests(SynchronousTestCase):
    def refused(self, handler: Handler, request: Message, version: int, serving: Serving) -> KafkaError:
        with pytest.raises(KafkaError) as caught:
            serving.ask(handler, request, version)
        return caught.value

    def test_tokens_are_not_supported(self) -> None:
        """
        Each request is refused in each of Kafka's versions.
        """
        for handler, versions in TOKENS.items():
            assert handler.advertised == versions, handler.name
            for version in versions:
                request = Sample().one_of_each(handler.request, version)
                error = self.refused(handler, request, version, Serving())
                assert error.code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, handler.name
                assert "not served" in (error.message or "")

    def test_a_token_for_another_user_needs_permission(self) -> None:
        """
        The permission is to create tokens for that user.
        """
        authorizer = Denying()
        error = self.refused(create_delegation_token, _create_for("bob"), 3, Serving(authorizer))
        assert error.code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert "User:ANONYMOUS" in (error.message or "")
        assert authorizer.asked == [(Operation.CREATE_TOKENS, Resource.USER, "User:bob")]

    def test_a_token_for_oneself_needs_no_permission(self) -> None:
        """
        The client may give its own name, an empty one or none.
        """
        for owner in ("ANONYMOUS", "", None):
            authorizer = Denying()
            error = self.refused(create_delegation_token, _create_for(owner), 3, Serving(authorizer))
            assert error.code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            assert "User:ANONYMOUS" in (error.message or "")
            assert authorizer.asked == []
