"""
How servers behind HTTP are asked: how long they may take, and what says that it is allowed.

A filer of SeaweedFS takes a signature that is good for some seconds, so each task signs its own; a `security.toml`, as
SeaweedFS's own programs have it, says with what, and where certificates are. Those have to be on all machines.
"""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgateway.spark.failures import WrongOption

_READ = "jwt.filer_signing.read"


@dataclass(frozen=True, slots=True)
class Access:
    """
    It goes to the tasks with the query.
    """

    answer_s: float = 30.0  # the longest that a server may take for an answer
    patience_s: float = 120.0  # how long it may take until something works again
    authorization: str = ""  # a header, as it is
    security_file: str = ""

    def check(self) -> None:
        """
        WrongOption where the file will not do.
        """
        self.context()
        self.headers()

    def headers(self) -> Mapping[str, str]:
        """
        What each request has to say.
        """
        if self.authorization:
            return {"Authorization": self.authorization}
        if not self.security_file:
            return {}
        from kgateway.broker.seaweed.security_file import BadSecurity, SecurityFile
        from kgateway.broker.seaweed.tokens import token

        try:
            key = SecurityFile(Path(self.security_file)).signing_key(_READ)
        except BadSecurity as error:
            raise WrongOption(str(error)) from error
        if key is None:
            return {}
        claims = {"exp": int(time.time()) + key.expires_s} if key.expires_s else {}
        return {"Authorization": f"Bearer {token(key.secret, claims)}"}

    def context(self) -> ssl.SSLContext:
        """
        What is made of TLS, where the URL wants it.
        """
        if not self.security_file:
            return ssl.create_default_context()
        from kgateway.broker.seaweed.security_file import BadSecurity, SecurityFile

        try:
            tls = SecurityFile(Path(self.security_file)).https()
            if tls is None:
                return ssl.create_default_context()
            context = ssl.create_default_context(cafile=tls.authorities.path if tls.authorities else None)
            context.check_hostname = tls.checks_names
            context.verify_mode = ssl.CERT_REQUIRED if tls.authorities else ssl.CERT_NONE
            if tls.identity:
                context.load_cert_chain(tls.identity.certificate.path, tls.identity.key.path)
        except (BadSecurity, OSError) as error:  # also where a certificate will not do
            raise WrongOption(f"{self.security_file} cannot be used: {error}") from error
        return context

    @property
    def why_refused(self) -> str:
        """
        What to look at when a server does not allow a request.
        """
        if self.authorization:
            return "it does not take what kgateway.http.authorization says"
        if self.security_file:
            return f"it does not take what is signed with `key` under [{_READ}] of {self.security_file}"
        return "name what it wants by kgateway.http.authorization, or a security.toml by kgateway.seaweed.security"
