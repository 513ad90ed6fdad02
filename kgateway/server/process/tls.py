"""
TLS, left out of a process that never uses it.

Twisted imports OpenSSL at its start if it is installed, which takes 12 MiB and a tenth of the time. Twisted also works
without, so here OpenSSL is made to look as if it were not installed.
"""

import sys
from collections.abc import Mapping, Sequence

from kgateway.config.settings import Settings, read_settings
from kgateway.config.sources import SettingsError
from kgateway.server.discovery import OWN_MODULE, modules_dropped_in

_OPENSSL = "OpenSSL"
_LOCAL = ("memory:", "log:")  # brokers that connect to nobody


def leave_out_tls(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """
    Hide OpenSSL from Twisted, unless this process may use TLS. It must be called before anything imports a reactor.
    """
    try:
        settings = read_settings(arguments, environ)
    except SettingsError:
        return  # the start will fail, and say why
    if not may_use_tls(settings):
        sys.modules.setdefault(_OPENSSL, None)  # type: ignore[arg-type]  # so the language defines "not installed"


def may_use_tls(settings: Settings) -> bool:
    """
    Whether a listener has TLS, the broker is a cluster, or there are plugins, which may do anything.
    """
    is_local = settings.broker.startswith(_LOCAL) and all(listener.is_plain for listener in settings.listen)
    return not is_local or bool(settings.handlers) or any(name != OWN_MODULE for name in modules_dropped_in())
