"""
How to look at a cluster that is for trying things out, and is secured: its processes take the `security.toml` in their
folder.
"""

import ssl
from pathlib import Path
from ssl import SSLContext
from typing import NamedTuple

from kgateway.broker.seaweed.dev_process import NotStarted
from kgateway.broker.seaweed.security_file import BadSecurity, SecurityFile, Tls

_FILE = "security.toml"


class DevSecurity(NamedTuple):
    """
    What connections are made with; none where they are plain.
    """

    grpc: SSLContext | None = None
    https: SSLContext | None = None


def security_in(folder: Path) -> DevSecurity:
    """
    Of the processes whose folder it is.
    """
    path = folder / _FILE
    if not path.exists():
        return DevSecurity()
    try:
        file = SecurityFile(path)
        return DevSecurity(_context(file.grpc(), ["h2"]), _context(file.https(), ["http/1.1"]))
    except (BadSecurity, OSError) as error:  # also where a certificate will not do
        raise NotStarted(f"{path} cannot be used: {error}") from error


def _context(tls: Tls | None, protocols: list[str]) -> SSLContext | None:
    if not tls:
        return None
    context = ssl.create_default_context(cafile=tls.authorities.path if tls.authorities else None)
    context.check_hostname = tls.checks_names
    context.verify_mode = ssl.CERT_REQUIRED if tls.authorities else ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    if tls.identity:
        context.load_cert_chain(tls.identity.certificate.path, tls.identity.key.path)
    return context
