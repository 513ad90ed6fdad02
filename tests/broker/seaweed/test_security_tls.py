"""
Certificates and keys that are not usable are reported at the start, with their files.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("OpenSSL")
pytest.importorskip("cryptography")

import grpc
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from google.protobuf.wrappers_pb2 import BytesValue

from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.security.cluster_access import Role
from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from tests.broker.seaweed.grpc.certificates import Authority
from tests.broker.seaweed.grpc.conftest import endpoint
from tests.broker.seaweed.grpc.grpcio_server import Server, method
from tests.broker.seaweed.real_reactor import reactor, wait
from tests.broker.seaweed.secured_cluster import write_security

# Twisted 26.10 gives pyOpenSSL 26 what it wants to be given no more.
pytestmark = pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    A usable file.
    """
    authority = Authority()
    pair = authority.certify("gateway")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "our.pem").write_bytes(pair.certificate)
    (tmp_path / "our.key").write_bytes(pair.key)
    sections = {"grpc": {"ca": "ca.pem"}, "grpc.client": {"cert": "our.pem", "key": "our.key"}}
    return write_security(tmp_path / "security.toml", sections)


def load(path: Path) -> TomlSecurity:
    return TomlSecurity(SecurityFile(path, {}))


def encrypted(key: Path) -> None:
    form = Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
    key.write_bytes(load_pem_private_key(key.read_bytes(), None).private_bytes(*form))


def test_good_files_will_do(path: Path) -> None:
    assert load(path)


def test_both_sides_agree_on_http2(path: Path) -> None:
    """
    Some gRPC servers require this first.
    """
    certificate, key = ((path.parent / name).read_bytes() for name in ("our.pem", "our.key"))
    ca = (path.parent / "ca.pem").read_bytes()
    server = Server(grpc.ssl_server_credentials([(key, certificate)], ca, True))
    channel = Channel(load(path).grpc(endpoint(server.port), Role.FILER).connect, "gateway", reactor)
    try:
        assert wait(channel.call(method("Echo"), BytesValue(value=b"hello"), 20)).value == b"hello"
    finally:
        wait(channel.close())
        server.stop()


@pytest.mark.parametrize(
    ("name", "spoil", "problem"),
    [
        ("ca.pem", Path.unlink, r"ca\.pem \(`ca` under \[grpc\] of .*\) cannot be read: No such file"),
        ("ca.pem", lambda file: file.write_bytes(b"\0der"), r"ca\.pem \(.*\) has no certificate in PEM"),
        ("our.pem", lambda file: file.write_text(""), r"our\.pem \(`cert` under .*\) has no certificate in PEM"),
        ("our.key", lambda file: file.write_text("key"), r"our\.key \(`key` under .*\) has no private key in PEM"),
        ("our.key", encrypted, r"our\.key \(.*\) is encrypted"),
        (
            "our.key",
            lambda file: file.write_bytes(Authority().certify("x").key),
            r"our\.key \(.*\) is not the key of the certificate .*our\.pem",
        ),
    ],
)
def test_bad_files_are_reported(path: Path, name: str, spoil: Callable[[Path], object], problem: str) -> None:
    """
    The error says which section names the file.
    """
    spoil(path.parent / name)
    with pytest.raises(BadSecurity, match=problem):
        load(path)
