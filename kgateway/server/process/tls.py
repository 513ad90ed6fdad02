"""
TLS, left out of a process that never uses it.

Twisted imports pyOpenSSL at its start if it is installed, which takes 12 MiB and a tenth of the time, and modules of
Python's library that are on OpenSSL, too, which takes 4.5 MiB. All of it also works without, so here what is on OpenSSL
is made to look as if it were not installed.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from kgateway.config.settings import Settings, read_settings
from kgateway.config.sources import SettingsError
from kgateway.server.process.twisted_plugins import OWN_MODULE, modules_dropped_in

_LOCAL = ("memory:", "log:")  # brokers that connect to nobody


def leave_out_tls(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """
    Hide OpenSSL from Twisted, unless this process may use TLS. It must be called before anything imports Twisted.
    """
    try:
        settings = read_settings(arguments, environ)
    except SettingsError:
        return  # the start will fail, and say why
    if not may_use_tls(settings):
        for module in _modules():
            sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # so the language defines "not installed"


def may_use_tls(settings: Settings) -> bool:
    """
    Whether a listener has TLS, the broker is a cluster, or there are plugins, which may do anything.
    """
    is_local = settings.broker.startswith(_LOCAL) and all(listener.is_plain for listener in settings.listen)
    return not is_local or bool(settings.handlers) or any(name != OWN_MODULE for name in modules_dropped_in())


def _modules() -> Iterator[str]:
    yield from ("OpenSSL", "ssl")
    if find_spec("_md5"):  # some systems build a Python that has its hashes from OpenSSL only
        yield "_hashlib"
