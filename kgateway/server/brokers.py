"""
The brokers there are, by the scheme of the text that names one: `memory:`, `log:DIR`, ...
"""

from collections.abc import Callable

from kgateway.broker.memory import MemoryBroker
from kgateway.config.settings import Settings
from kgateway.config.sources import SettingsError
from kgateway.interfaces import IBroker

NowMs = Callable[[], int]


def open_broker(settings: Settings, now_ms: NowMs) -> IBroker:
    """
    The broker that the settings name; nothing is opened yet.
    """
    scheme, _, rest = settings.broker.partition(":")
    make = _SCHEMES.get(scheme)
    if make is None:
        known = ", ".join(f"{name}:" for name in _SCHEMES)
        raise SettingsError(f"there is no broker {settings.broker!r}: those there are begin with {known}")
    return make(settings, rest, now_ms)


def _memory(settings: Settings, rest: str, now_ms: NowMs) -> IBroker:
    if rest:
        raise SettingsError(f"the broker memory: takes nothing behind the colon, and {rest!r} is there")
    return MemoryBroker(node_id=settings.node_id, now_ms=now_ms, producer_expiry_ms=settings.producer_id_expiration_ms)


_SCHEMES = {"memory": _memory}
