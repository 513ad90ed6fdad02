"""
The brokers that `--broker` can name, by the scheme of its text: `memory:`, `log:FOLDER`, `seaweedmq:MASTER:PORT,...`.
"""

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from twisted.internet.task import Cooperator
from twisted.internet.threads import deferToThreadPool

from kgateway.broker.memory import MemoryBroker
from kgateway.broker.seaweed.security.cluster_access import Security
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from kgateway.cluster.broker_config import topic_defaults
from kgateway.config.settings import Settings
from kgateway.config.sources import SettingsError, refusing
from kgateway.extras import not_installed
from kgateway.interfaces import IBroker
from kgateway.server.peers import Peers

NowMs = Callable[[], int]

_EXTRA = "seaweedmq"
_OPEN_FILES = range(64, 4_096)


def open_broker(settings: Settings, now_ms: NowMs, reactor: Any) -> IBroker:
    """
    The broker that the settings name. It opens nothing before its start.
    """
    with refusing(f"broker is {settings.broker!r}"):
        check_broker(settings.broker)
    scheme, _, rest = settings.broker.partition(":")
    return _SCHEMES[scheme](settings, rest, now_ms, reactor)


def check_broker(text: str) -> None:
    """
    Raise ValueError if there is no such broker, or if a library is missing that it needs.
    """
    scheme, _, rest = text.partition(":")
    if scheme not in _SCHEMES:
        *others, last = (f"{name}:" for name in _SCHEMES)
        raise ValueError(f"there is no broker {scheme}:; write {', '.join(others)} or {last}")
    if scheme == "memory" and rest:
        raise ValueError("memory: accepts nothing after the colon; write memory:")
    if scheme == "log" and not rest:
        raise ValueError("the folder is missing; write log:FOLDER, such as log:kgateway-data")
    if scheme == "seaweedmq":
        _check_seaweedmq(rest)


def _check_seaweedmq(rest: str) -> None:
    try:
        from kgateway.broker.seaweed.calls.addresses import master_addresses
        from kgateway.broker.seaweedmq import broker as _  # noqa: F401  # imported to see whether its libraries are installed
    except ImportError as error:
        raise ValueError(not_installed(error, _EXTRA)) from None
    try:
        master_addresses(rest)
    except ValueError as error:
        raise ValueError(f"{error}; write seaweedmq:MASTER:PORT,...") from None


def _seaweed_security(settings: Settings) -> Security | None:
    if settings.seaweed_security is None:
        return None
    try:
        from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
    except ImportError as error:
        raise SettingsError(f"seaweed_security is set: {not_installed(error, _EXTRA)}") from None
    try:
        return TomlSecurity(SecurityFile(Path(settings.seaweed_security)))
    except BadSecurity as error:
        raise SettingsError(f"seaweed_security: {error}") from None


def _memory(settings: Settings, rest: str, now_ms: NowMs, reactor: Any) -> IBroker:
    return MemoryBroker(
        node_id=settings.node_id,
        now_ms=now_ms,
        producer_expiry_ms=settings.producer_id_expiration_ms,
        topic_defaults=topic_defaults(settings),
        offsets_partitions=settings.offsets_topic_num_partitions,
        clock=reactor,
        retention_check_ms=settings.retention_check_interval_ms,
    )


def _log(settings: Settings, rest: str, now_ms: NowMs, reactor: Any) -> IBroker:
    from kgateway.broker.log.broker import LogBroker
    from kgateway.broker.log.compaction.helper_process import HelperProcess
    from kgateway.broker.log.files.local_disk import LocalDisk
    from kgateway.broker.log.sync_thread import SyncThread

    by_turns = Cooperator(scheduler=partial(reactor.callLater, 0))
    return LogBroker(
        Path(rest),
        node_id=settings.node_id,
        now_ms=now_ms,
        clock=reactor,
        in_thread=lambda call: deferToThreadPool(reactor, reactor.getThreadPool(), call),
        in_turns=lambda steps: by_turns.coiterate(steps),  # noqa: PLW0108  # coiterate has a second parameter
        disk=LocalDisk(),
        producer_expiry_ms=settings.producer_id_expiration_ms,
        topic_defaults=topic_defaults(settings),
        open_files_max=_open_files_max(),
        offsets_partitions=settings.offsets_topic_num_partitions,
        retention_check_ms=settings.retention_check_interval_ms,
        compaction_backoff_ms=settings.compaction_backoff_ms,
        compactor=HelperProcess(settings.compaction_memory_bytes),
        sync_thread=SyncThread(reactor.callFromThread),
    )


def _seaweedmq(settings: Settings, rest: str, now_ms: NowMs, reactor: Any) -> IBroker:
    from kgateway.broker.seaweed.calls.addresses import master_addresses
    from kgateway.broker.seaweedmq.broker import SeaweedMQBroker

    return SeaweedMQBroker(
        master_addresses(rest),
        node_id=settings.node_id,
        now_ms=now_ms,
        reactor=reactor,
        client=f"kgateway-{settings.node_id}@{gethostname()}",
        producer_expiry_ms=settings.producer_id_expiration_ms,
        topic_defaults=topic_defaults(settings),
        offsets_partitions=settings.offsets_topic_num_partitions,
        filer_group=settings.seaweed_filer_group,
        retention_check_ms=settings.retention_check_interval_ms,
        security=_seaweed_security(settings),
        peers=Peers(reactor),
        listeners={listener.name for listener in settings.listen},
        recent_bytes=settings.seaweedmq_recent_bytes,
        ledger_interval_ms=settings.seaweedmq_ledger_interval_ms,
        watchdog_ms=settings.seaweedmq_watchdog_ms,
    )


def _open_files_max() -> int:
    """
    A quarter of the descriptors that this process may have; clients need the others.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(allowed // 4, _OPEN_FILES.start), _OPEN_FILES.stop)


_SCHEMES = {"memory": _memory, "log": _log, "seaweedmq": _seaweedmq}
