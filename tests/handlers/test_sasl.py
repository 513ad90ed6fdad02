"""
SASL requests to a gateway without authentication.
"""

import pytest
from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.sasl_authenticate import sasl_authenticate
from kgateway.handlers.sasl_handshake import sasl_handshake
from kgateway.messages.sasl_authenticate import SaslAuthenticateRequest
from kgateway.messages.sasl_handshake import SaslHandshakeRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Serving


class SaslTests(SynchronousTestCase):
    def test_a_handshake_is_refused(self) -> None:
        """
        The client gets ILLEGAL_SASL_STATE, and the reason names the listener.
        """
        for version in (0, 1):
            with pytest.raises(KafkaError) as caught:
                Serving().ask(sasl_handshake, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), version)
            assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE
            assert "SCRAM-SHA-256" in (caught.value.message or "")
            assert "plaintext" in (caught.value.message or "")

    def test_tokens_without_a_handshake_are_refused(self) -> None:
        for version in (0, 1, 2):
            with pytest.raises(KafkaError) as caught:
                Serving().ask(sasl_authenticate, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), version)
            assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE
            assert "plaintext" in (caught.value.message or "")
            assert "secret" not in (caught.value.message or "")

    def test_versions_of_kafka_are_advertised(self) -> None:
        """
        No listener has authentication.
        """
        assert (sasl_handshake.advertised, sasl_authenticate.advertised) == (range(2), range(3))
