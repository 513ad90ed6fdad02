"""
Authentication where there is none.
"""

import pytest
from twisted.trial.unittest import SynchronousTestCase

from handlers.sasl_authenticate import sasl_authenticate
from handlers.sasl_handshake import sasl_handshake
from kgateway.messages.sasl_authenticate import SaslAuthenticateRequest
from kgateway.messages.sasl_handshake import SaslHandshakeRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Serving


class SaslTests(SynchronousTestCase):
    def test_handshake(self) -> None:
        """
        A client that wants to authenticate is told that it is out of turn, and the operator that the listener has none.
        """
        for version in (0, 1):
            with pytest.raises(KafkaError) as caught:
                Serving().ask(sasl_handshake, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), version)
            assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE
            assert "SCRAM-SHA-256" in (caught.value.message or "")
            assert "plaintext" in (caught.value.message or "")

    def test_authenticate(self) -> None:
        """
        Tokens without a handshake are out of turn too.
        """
        for version in (0, 1, 2):
            with pytest.raises(KafkaError) as caught:
                Serving().ask(sasl_authenticate, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), version)
            assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE
            assert "plaintext" in (caught.value.message or "")
            assert "secret" not in (caught.value.message or "")

    def test_versions(self) -> None:
        """
        Both are told of in the versions of Kafka, though no listener has authentication.
        """
        assert (sasl_handshake.advertised, sasl_authenticate.advertised) == (range(2), range(3))
