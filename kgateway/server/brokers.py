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
    check_broker(settings.broker)
    scheme, _, rest = settings.broker.partition(":")
    return _SCHEMES[scheme](settings, rest, now_ms)


def check_broker(text: str) -> None:
    """
    Refuse a text that names no broker.
    """
    scheme, _, rest = text.partition(":")
    if scheme not in _SCHEMES:
        known = ", ".join(f"{name}:" for name in _SCHEMES)
        raise SettingsError(f"there is no broker {text!r}; what there is begins with {known}")
    if scheme == "memory" and rest:
        raise SettingsError(f"the broker is {text!r}: memory: takes nothing behind the colon")


def _memory(settings: Settings, rest: str, now_ms: NowMs) -> IBroker:
    return MemoryBroker(node_id=settings.node_id, now_ms=now_ms, producer_expiry_ms=settings.producer_id_expiration_ms)


_SCHEMES = {"memory": _memory}
