"""
OpenSSL in the process of a gateway: imported only if something may need it.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.config.settings import read_settings
from kgateway.server.process import tls
from kgateway.server.process.tls import may_use_tls
from kgateway.server.process.twisted_plugins import OWN_MODULE
from kgateway.testing.kafka import Kafka

CERTIFICATE = "privateKey=key.pem:certKey=cert.pem"


@pytest.mark.parametrize(
    ("options", "may"),
    [
        ([], False),
        (["--broker", "memory:"], False),
        (["--listen", "inside=tcp:9092", "--listen", "unix:kafka.sock"], False),
        (["--listen", "tcp:9092", "--listen", f"ssl:9093:{CERTIFICATE}"], True),
        (["--listen", f"haproxy:ssl:9093:{CERTIFICATE}"], True),
        (["--listen", "certbot:9093"], True),
        (["--broker", "seaweedmq:localhost:9333"], True),
        (["--handlers", "acme"], True),
    ],
)
def test_what_may_use_tls(options: list[str], may: bool) -> None:
    assert may_use_tls(read_settings(options, {})) is may


def test_a_plugin_may_use_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its code is not known, so it finds the process as Twisted makes it.
    """
    dropped = [OWN_MODULE, "twisted.plugins.acme"]
    monkeypatch.setattr(tls, "modules_dropped_in", lambda: iter(dropped))
    assert may_use_tls(read_settings([], {}))


def mapped(kafka: Kafka) -> bool:
    """
    Whether OpenSSL is in the memory of the process, with the bindings that pyOpenSSL uses, or those of Python.
    """
    files = Path(f"/proc/{kafka.pid}/maps").read_text()
    return any(name in files for name in ("cryptography", "libcrypto", "_ssl."))


@pytest.fixture
def plain() -> Iterator[Kafka]:
    with Kafka("--broker", "memory:") as kafka:
        yield kafka


def test_a_gateway_without_tls_does_not_import_openssl(plain: Kafka) -> None:
    assert not mapped(plain)


def test_a_gateway_with_plugins_has_openssl(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(
        "from OpenSSL import SSL\nfrom kgateway.api import *\nfrom kgateway.handlers.api_versions import api_versions\n"
    )
    with Kafka("--broker", "memory:", "--handlers", "acme", folder=tmp_path) as kafka:
        assert mapped(kafka)


def test_a_mistake_in_an_option_is_reported_as_ever(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgateway", "serve", "--listen", "tcp:x"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "the port 'x' is not a number" in run.stderr
