"""
A certificate authority for tests, and the certificates that it issues.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAY = timedelta(days=1)


class Pair(NamedTuple):
    """
    A private key and its certificate, as PEM.
    """

    key: bytes
    certificate: bytes


class Authority:
    """
    Certifies servers and clients on this machine. It is a root, or another authority has certified it.
    """

    def __init__(self, name: str = "authority", by: "Authority | None" = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        above = by or self
        builder = above._builder(name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = _pem(builder.sign(above._key, hashes.SHA256()))

    def certify(self, name: str) -> Pair:
        """
        Issue a certificate for this name, at 127.0.0.1.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
        builder = self._builder(name, key.public_key()).add_extension(names, critical=False)
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return Pair(key.private_bytes(*form), _pem(builder.sign(self._key, hashes.SHA256())))

    def _builder(self, name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(_name(name)).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - _DAY).not_valid_after(now + _DAY)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
