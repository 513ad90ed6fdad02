"""
Calls over TLS with certificates on both sides; skipped if Twisted has no TLS.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

pytest.importorskip("OpenSSL")
pytest.importorskip("cryptography")

import grpc
from google.protobuf.wrappers_pb2 import BytesValue
from twisted.internet import ssl
from twisted.internet.endpoints import wrapClientTLS

from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from tests.broker.seaweed.grpc.certificates import Authority, Pair
from tests.broker.seaweed.grpc.conftest import channel_to, endpoint
from tests.broker.seaweed.grpc.grpcio_server import Server, method
from tests.broker.seaweed.real_reactor import reactor, wait

# Twisted 26.10 gives pyOpenSSL 26 what it wants to be given no more.
pytestmark = pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning")


class Secured(NamedTuple):
    """
    A server, and the authority that certified it.
    """

    server: Server
    authority: Authority


@pytest.fixture
def secured() -> Iterator[Secured]:
    authority = Authority()
    pair = authority.certify("server")
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)], authority.certificate, True)
    server = Server(credentials)
    yield Secured(server, authority)
    server.stop()


def trusting(authority: Authority, client: Pair, port: int) -> Channel:
    """
    A channel to a server that this authority has certified.
    """
    options = ssl.optionsForClientTLS(
        "server",
        trustRoot=ssl.Certificate.loadPEM(authority.certificate),
        clientCertificate=ssl.PrivateCertificate.loadPEM(client.key + client.certificate),
    )
    return Channel(wrapClientTLS(options, endpoint(port)).connect, "server", reactor)


def called(channel: Channel, value: bytes) -> bytes:
    """
    The answer of an echo, after which the channel is closed.
    """
    try:
        return wait(channel.call(method("Echo"), BytesValue(value=value), 20)).value
    finally:
        wait(channel.close())


def test_both_sides_show_who_they_are(secured: Secured) -> None:
    channel = trusting(secured.authority, secured.authority.certify("client"), secured.server.port)
    value = bytes(range(256)) * 40_000
    assert called(channel, value) == value


def test_a_server_certified_by_somebody_else_is_not_spoken_to(secured: Secured) -> None:
    channel = trusting(Authority(), secured.authority.certify("client"), secured.server.port)
    with pytest.raises(RpcError) as refused:
        called(channel, b"hello")
    assert refused.value.status is Status.UNAVAILABLE
    assert "certificate verify failed" in refused.value.message


def test_a_client_certified_by_somebody_else_is_refused(secured: Secured) -> None:
    channel = trusting(secured.authority, Authority().certify("client"), secured.server.port)
    with pytest.raises(RpcError) as refused:
        called(channel, b"hello")
    assert refused.value.status is Status.UNAVAILABLE


def test_without_tls_a_secured_server_does_not_answer(secured: Secured) -> None:
    with pytest.raises(RpcError) as refused:
        called(channel_to(secured.server.port), b"hello")
    assert refused.value.status is Status.UNAVAILABLE
