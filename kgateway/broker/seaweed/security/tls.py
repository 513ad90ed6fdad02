"""
TLS as a `security.toml` has it, on Twisted's endpoints; errors are described in the operator's words.
"""

from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate, load_pem_x509_certificates
from OpenSSL import SSL
from OpenSSL.crypto import X509, PKey
from service_identity import VerificationError
from twisted.internet import ssl
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocolFactory,
    IProtocolNegotiationFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.seaweed.security.security_toml import BadSecurity, Identity, PemFile, Tls


class TlsFailed(Exception):
    """
    The two sides do not trust each other, or one of them does not speak TLS; the message is for the operator.
    """


def load(tls: Tls) -> dict[str, Any]:
    """
    The arguments of CertificateOptions; raises BadSecurity if a file is not usable.
    """
    options: dict[str, Any] = {}
    if tls.authorities:
        found = [ssl.Certificate(X509.from_cryptography(each)) for each in _certificates(tls.authorities)]
        options["trustRoot"] = ssl.trustRootFromCertificates(found)
    if tls.identity:
        own, *between = [X509.from_cryptography(each) for each in _certificates(tls.identity.certificate)]
        options |= {"certificate": own, "extraCertChain": between, "privateKey": _key(tls.identity)}
    return options


@implementer(IStreamClientEndpoint)
class TlsEndpoint:
    """
    An endpoint for a server that has this section in its own security.toml. With a host, its certificate must be for
    that host.
    """

    def __init__(
        self, plain: IStreamClientEndpoint, tls: Tls, section: str, host: str = "", clock: IReactorTime | None = None
    ) -> None:
        self._plain = plain
        self._tls = tls
        self._theirs = f"under {section} of its security.toml"
        self._host = host
        self._clock = clock

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:  # noqa: N803  # Twisted's
        try:
            creator = self._creator(_spoken(protocolFactory))
        except BadSecurity:
            return fail()
        secured = TLSMemoryBIOFactory(creator, True, _Factory(protocolFactory, self), self._clock)
        connected: Deferred[Any] = self._plain.connect(secured)
        return connected.addCallback(lambda tls: tls.wrappedProtocol.wrappedProtocol)

    def in_words(self, reason: Failure) -> Failure:
        """
        The reason of a lost connection, in the operator's words.
        """
        if reason.check(VerificationError):
            return Failure(TlsFailed(f"the server's certificate is not for {self._host}: see `cert` {self._theirs}"))
        if not isinstance(reason.value, SSL.Error):
            return reason
        details = reason.value.args[0] if reason.value.args else ()
        problem = details[-1][-1] if details else "the connection was closed"
        return Failure(TlsFailed(f"TLS: {problem}: {self._meaning(problem)}"))

    def _meaning(self, problem: str) -> str:
        if "verify failed" in problem:
            return f"the server's certificate is not from {self._tls.authorities}, or not valid at this time"
        if "alert" in problem:
            ours = self._tls.identity.certificate if self._tls.identity else f"no certificate, see {self._tls.place}"
            theirs = "its `ca` and its `allowed_commonNames` say which clients it accepts"
            return f"the server does not accept our certificate: {ours}; {theirs}"
        return f"the server may have no TLS: see `cert` and `key` {self._theirs}"

    def _creator(self, spoken: list[bytes]) -> IOpenSSLClientConnectionCreator:
        options = load(self._tls)
        if not self._tls.checks_names:
            return _Nameless(ssl.CertificateOptions(**options).getContext(), spoken)
        trust = options.pop("trustRoot")
        return ssl.optionsForClientTLS(self._host, trust, acceptableProtocols=spoken, extraCertificateOptions=options)


@implementer(IOpenSSLClientConnectionCreator)
class _Nameless:
    """
    Creates connections that verify the issuer of the server's certificate, and no host name.
    """

    def __init__(self, context: SSL.Context, spoken: list[bytes]) -> None:
        self._context = context
        self._spoken = spoken

    def clientConnectionForTLS(self, tlsProtocol: object) -> SSL.Connection:  # noqa: N803  # Twisted's
        connection = SSL.Connection(self._context, None)
        connection.set_alpn_protos(self._spoken)
        return connection


class _Protocol(ProtocolWrapper):
    factory: "_Factory"

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(self.factory.endpoint.in_words(reason))


class _Factory(WrappingFactory):
    noisy = False
    protocol = _Protocol

    def __init__(self, wrapped: IProtocolFactory, endpoint: TlsEndpoint) -> None:
        super().__init__(wrapped)
        self.endpoint = endpoint


def _spoken(factory: IProtocolFactory) -> list[bytes]:
    if not IProtocolNegotiationFactory.providedBy(factory):
        return [b"http/1.1"]
    found: list[bytes] = factory.acceptableProtocols()
    return found


def _certificates(file: PemFile) -> Sequence[Certificate]:
    try:
        return load_pem_x509_certificates(_read(file))
    except ValueError:
        raise BadSecurity(f"{file} has no certificate in PEM") from None


def _key(identity: Identity) -> PKey:
    try:
        key = load_pem_private_key(_read(identity.key), password=None)
    except TypeError:
        raise BadSecurity(f"{identity.key} is encrypted; SeaweedFS and kgateway need keys without a password") from None
    except ValueError:
        raise BadSecurity(f"{identity.key} has no private key in PEM") from None
    if key.public_key() != _certificates(identity.certificate)[0].public_key():
        raise BadSecurity(f"{identity.key} is not the key of the certificate {identity.certificate}")
    return PKey.from_cryptography_key(key)  # type: ignore[arg-type]  # kinds that it does not take fail with its words


def _read(file: PemFile) -> bytes:
    try:
        return file.path.read_bytes()
    except OSError as error:
        raise BadSecurity(f"{file} cannot be read: {error.strerror}") from None
