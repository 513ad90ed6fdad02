"""
The settings of a gateway, as one table: the fields of `Settings`.

A field `num_partitions` is the option `--num-partitions`, the TOML key `num_partitions` and the environment variable
`KGATEWAY_NUM_PARTITIONS`. The command line takes precedence over the environment, the environment over the file, the
file over the default. `--help` and docs/configuration.md are generated from the same table.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from kgateway.config.kinds import (
    SettingKind,
    boolean,
    choice,
    duration,
    duration_or_unlimited,
    matching,
    number,
    path,
    size,
)
from kgateway.config.listeners import Advertised, Listener, assign, check_listeners, parse_advertised, parse_listener
from kgateway.config.sources import (
    ADVICE,
    Check,
    Option,
    SettingsError,
    from_arguments,
    from_environment,
    from_file,
    refusing,
    value_of,
)

D = TypeVar("D")
# The memory limits of control groups, version 2 and 1, as a container sees its own.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_I16_MAX = (1 << 15) - 1
_I32_MAX = (1 << 31) - 1
_NEVER = (1 << 63) - 1  # as in Kafka


def option(default: D, meaning: str, kind: SettingKind, kafka: str = "", *, repeats: bool = False) -> D:
    return field(default=default, metadata={"meaning": meaning, "kind": kind, "kafka": kafka, "repeats": repeats})


@dataclass(frozen=True, slots=True)
class Settings:
    listen: tuple[Listener, ...] = option(
        (parse_listener("tcp:9092:interface=127.0.0.1"),),
        "where the gateway listens; if there are several listeners, each needs a name",
        SettingKind("[NAME=]ENDPOINT", "a Twisted endpoint string, or NAME=ENDPOINT", parse_listener),
        "listeners",
        repeats=True,
    )
    advertise: tuple[Advertised, ...] = option(
        (),
        "the address that a listener advertises to clients; by default the one to which they connected",
        SettingKind("[NAME=]HOST:PORT", "HOST:PORT, or NAME=HOST:PORT with the name of a listener", parse_advertised),
        "advertised.listeners",
        repeats=True,
    )
    broker: str = option(
        "log:./kgateway-data",
        "where topics and records are stored: log:FOLDER for files, seaweedmq:MASTER:PORT,... for a SeaweedMQ cluster, "
        "or memory: for memory, whose contents are lost when the gateway stops",
        matching("SCHEME:REST", "SCHEME:REST, such as log:FOLDER or memory:", r"(?s)[a-z][a-z0-9+.-]*:.*"),
    )
    config: str | None = option(None, "a TOML file with further settings", path())
    port_file: str | None = option(
        None, "a file to which the gateway writes its addresses as soon as clients can connect", path()
    )
    control_socket: str = option(
        "kgateway.sock",
        "the Unix socket through which `kgateway why`, `plugins`, `loglevel` and `profile` talk to the running gateway",
        path("a path of at most 100 bytes, the limit of Unix socket addresses", 100),
    )
    handlers: tuple[str, ...] = option(
        (),
        "a package with plugins to load in addition to installed plugins",
        matching("PACKAGE", "a dotted Python name", r"[^\W\d]\w*(\.[^\W\d]\w*)*"),
        repeats=True,
    )
    log_level: str = option(
        "info", "the lowest level that is logged", choice("debug", "info", "warn", "error", "critical")
    )
    node_id: int = option(1, "the id of this gateway among the brokers of its cluster", number(0), "node.id")
    max_request_bytes: int = option(100 << 20, "the largest request", size(1), "socket.request.max.bytes")
    request_memory_bytes: int = option(
        0,
        "the memory for all requests together, at least max_request_bytes; "
        "0 means a quarter of the machine's memory, at most 1GiB",
        size(0, 1 << 40),
        "queued.max.request.bytes",
    )
    max_idle_ms: int = option(600_000, "how long a connection may be idle", duration(1), "connections.max.idle.ms")
    stop_timeout_ms: int = option(10_000, "how long a stopping gateway waits for requests in progress", duration(0))
    auto_create_topics: bool = option(
        True, "whether topics are created when a client first uses them", boolean(), "auto.create.topics.enable"
    )
    num_partitions: int = option(
        4, "the default number of partitions of new topics", number(1, 10_000), "num.partitions"
    )
    default_replication_factor: int = option(
        1,
        "the default replication factor of new topics",
        number(1, _I16_MAX),
        "default.replication.factor",
    )
    replication_factor_policy: str = option(
        "clamp",
        "whether a replication factor or min.insync.replicas above the number of nodes is lowered to that number "
        "(clamp) or refused (strict)",
        choice("clamp", "strict"),
    )
    message_max_bytes: int = option(1_048_588, "the largest record batch", size(0), "message.max.bytes")
    compression_type: str = option(
        "producer",
        "how records are compressed in logs, unless the topic sets compression.type",
        choice("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.type",
    )
    acks_fsync: bool = option(
        False,
        "whether acks=all waits for an fsync, unless the topic sets kgateway.acks.fsync",
        boolean(),
        "kgateway.acks.fsync",
    )
    seaweedmq_format: str = option(
        "record",
        "how records are stored as SeaweedMQ messages, unless the topic sets seaweedmq.format",
        choice("record", "plain", "batch"),
        "seaweedmq.format",
    )
    seaweedmq_acks: str = option(
        "held",
        "what acks=all waits for on SeaweedMQ, unless the topic sets seaweedmq.acks",
        choice("held", "flushed", "received"),
        "seaweedmq.acks",
    )
    seaweedmq_recent_bytes: int = option(
        1 << 30,
        "the size of the temporary files that keep recent SeaweedMQ records for consumers that are not far behind",
        size(0),
    )
    seaweedmq_ledger_interval_ms: int = option(
        10_000,
        "how long after a change the ledger of a SeaweedMQ partition is saved, at the earliest",
        duration(1),
    )
    seaweedmq_watchdog_ms: int = option(
        4_000,
        "after how long a SeaweedMQ leader is killed whose process was stopped or hangs, so that a standby takes over; "
        "0 means never",
        duration(0),
    )
    seaweed_security: str | None = option(
        None, "the security.toml with the certificates and keys for a SeaweedFS cluster", path()
    )
    seaweed_filer_group: str = option(
        "",
        "the filerGroup of the filers and brokers of a SeaweedFS cluster, if they have one",
        matching("GROUP", "a name without spaces", r"\S*"),
    )
    flush_messages: int = option(
        _NEVER,
        "the number of records after which a log is synced; requests do not wait for the sync",
        number(1, _NEVER),
        "log.flush.interval.messages",
    )
    flush_ms: int = option(
        _NEVER,
        "the time after which a log is synced; requests do not wait for the sync",
        duration(0, _NEVER),
        "log.flush.interval.ms",
    )
    segment_bytes: int = option(
        1 << 30, "the size at which a log begins a new segment", size(1 << 20), "log.segment.bytes"
    )
    retention_ms: int = option(
        604_800_000,
        "how long records are kept, unless the topic sets retention.ms",
        duration_or_unlimited(_NEVER),
        "log.retention.ms",
    )
    retention_check_interval_ms: int = option(
        300_000,
        "how often expired records are deleted",
        duration(1),
        "log.retention.check.interval.ms",
    )
    compaction_backoff_ms: int = option(
        15_000,
        "how long to wait before looking again for logs to compact",
        duration(1),
        "log.cleaner.backoff.ms",
    )
    compaction_memory_bytes: int = option(
        128 << 20,
        "the memory for the keys of one compaction round; what does not fit is compacted in the next round",
        size(1 << 20),
        "log.cleaner.dedupe.buffer.size",
    )
    fetch_max_bytes: int = option(55 << 20, "the largest fetch response", size(1024), "fetch.max.bytes")
    fetch_sessions: int = option(
        1000, "how many incremental fetch sessions are kept", number(0), "max.incremental.fetch.session.cache.slots"
    )
    group_initial_rebalance_delay_ms: int = option(
        3_000,
        "how long the first rebalance of an empty classic group waits for more members",
        duration(0),
        "group.initial.rebalance.delay.ms",
    )
    group_min_session_timeout_ms: int = option(
        6_000,
        "the shortest session timeout of members of classic groups",
        duration(1),
        "group.min.session.timeout.ms",
    )
    group_max_session_timeout_ms: int = option(
        1_800_000,
        "the longest session timeout of members of classic groups",
        duration(1),
        "group.max.session.timeout.ms",
    )
    group_max_size: int = option(
        _I32_MAX, "how many members a classic group may have", number(1, _I32_MAX), "group.max.size"
    )
    group_consumer_session_timeout_ms: int = option(
        45_000,
        "how long a member of a consumer group (KIP-848) may be silent",
        duration(1),
        "group.consumer.session.timeout.ms",
    )
    group_consumer_heartbeat_interval_ms: int = option(
        5_000,
        "how often members of consumer groups (KIP-848) send heartbeats",
        duration(1),
        "group.consumer.heartbeat.interval.ms",
    )
    group_consumer_assignment_interval_ms: int = option(
        1_000,
        "the shortest time between two assignments of a consumer group (KIP-848)",
        duration(0),
        "group.consumer.assignment.interval.ms",
    )
    group_consumer_min_session_timeout_ms: int = option(
        45_000,
        "the shortest session timeout that can be set for one consumer group (KIP-848)",
        duration(1),
        "group.consumer.min.session.timeout.ms",
    )
    group_consumer_max_session_timeout_ms: int = option(
        60_000,
        "the longest session timeout that can be set for one consumer group (KIP-848)",
        duration(1),
        "group.consumer.max.session.timeout.ms",
    )
    group_consumer_min_heartbeat_interval_ms: int = option(
        5_000,
        "the shortest heartbeat interval that can be set for one consumer group (KIP-848)",
        duration(1),
        "group.consumer.min.heartbeat.interval.ms",
    )
    group_consumer_max_heartbeat_interval_ms: int = option(
        15_000,
        "the longest heartbeat interval that can be set for one consumer group (KIP-848)",
        duration(1),
        "group.consumer.max.heartbeat.interval.ms",
    )
    group_consumer_min_assignment_interval_ms: int = option(
        0,
        "the shortest assignment interval that can be set for one consumer group (KIP-848)",
        duration(0),
        "group.consumer.min.assignment.interval.ms",
    )
    group_consumer_max_assignment_interval_ms: int = option(
        15_000,
        "the longest assignment interval that can be set for one consumer group (KIP-848)",
        duration(0),
        "group.consumer.max.assignment.interval.ms",
    )
    group_consumer_max_size: int = option(
        _I32_MAX,
        "how many members a consumer group (KIP-848) may have",
        number(1, _I32_MAX),
        "group.consumer.max.size",
    )
    group_consumer_assignors: str = option(
        "uniform,range",
        "the names of the assignors of consumer groups (KIP-848); the first one is the default",
        matching(
            "NAME[,NAME]",
            "uniform, range, or both with a comma between them",
            r"(uniform|range)(,(uniform|range))*",
        ),
        "group.consumer.assignors",
    )
    group_consumer_migration_policy: str = option(
        "bidirectional",
        "which protocol changes are allowed while a group has members",
        matching(
            "POLICY",
            "bidirectional, upgrade, downgrade or disabled",
            "bidirectional|upgrade|downgrade|disabled",
        ),
        "group.consumer.migration.policy",
    )
    offsets_topic_num_partitions: int = option(
        8,
        "the number of partitions with which __consumer_offsets is created",
        number(1, 10_000),
        "offsets.topic.num.partitions",
    )
    offsets_retention_minutes: int = option(
        10_080,
        "how long the offsets of a group without members are kept",
        number(1, _I32_MAX),
        "offsets.retention.minutes",
    )
    offsets_retention_check_interval_ms: int = option(
        600_000,
        "how often expired offsets are deleted",
        duration(1),
        "offsets.retention.check.interval.ms",
    )
    offset_metadata_max_bytes: int = option(
        4_096, "the longest text that may be committed with an offset", size(0), "offset.metadata.max.bytes"
    )
    producer_id_expiration_ms: int = option(
        86_400_000,
        "how long the state of an idle idempotent producer is kept",
        duration(1),
        "producer.id.expiration.ms",
    )
    transaction_max_timeout_ms: int = option(
        900_000,
        "the longest transaction timeout that a client may ask for",
        duration(1),
        "transaction.max.timeout.ms",
    )
    transaction_timeout_check_interval_ms: int = option(
        10_000,
        "how often timed-out transactions are aborted",
        duration(1),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    )
    transactional_id_expiration_ms: int = option(
        604_800_000,
        "how long an unused transactional id is kept",
        duration(1),
        "transactional.id.expiration.ms",
    )
    transactional_id_check_interval_ms: int = option(
        3_600_000,
        "how often unused transactional ids are deleted",
        duration(1),
        "transaction.remove.expired.transaction.cleanup.interval.ms",
    )

    def request_budget_bytes(self, machine_bytes: int) -> int:
        """
        The bytes of requests held at once, on a machine with this much memory. The largest request always fits.
        """
        return self.request_memory_bytes or max(min(machine_bytes // 4, 1 << 30), self.max_request_bytes)


OPTION_SOURCES = "Each option can also be set in a TOML file or in the environment: see docs/configuration.md."
OPTIONS = {row.name: Option(row.name, row.default, **row.metadata) for row in fields(Settings)}
BY_KAFKA_NAME = {option.kafka: option for option in OPTIONS.values() if option.kafka}


def machine_memory_bytes() -> int:
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file_name in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or the word `max`
            limits.append(int(Path(file_name).read_text()))
    return min(limits)


def read_settings(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    checks: Mapping[str, Check] = MappingProxyType({}),
    advice: str = ADVICE,
) -> Settings:
    """
    The settings from the command line, the environment and the file that one of them names. `checks` are further checks
    of single values, by setting; `advice` is for options that do not exist.
    """
    rows = OPTIONS.values()
    given = from_environment(rows, environ) | from_arguments(rows, arguments, advice)
    if "config" in given:
        named = given["config"]
        given = from_file(rows, named, value_of(OPTIONS["config"], named)) | given
    settings = Settings(**{name: value_of(OPTIONS[name], wrote, checks.get(name)) for name, wrote in given.items()})
    return _consistent(settings, {name: wrote.place for name, wrote in given.items()})


def _consistent(settings: Settings, places: Mapping[str, str]) -> Settings:
    """
    The settings, checked against each other; advertised addresses get the names of their listeners.
    """
    with refusing(places.get("listen", "listen")):
        check_listeners(settings.listen)
    with refusing(places.get("advertise", "advertise")):
        advertise = assign(settings.advertise, settings.listen)
    largest = settings.max_request_bytes
    if 0 < settings.request_memory_bytes < largest:
        written = f"{places['request_memory_bytes']} is {settings.request_memory_bytes}"
        raise SettingsError(f"{written}: it must be 0, or at least max_request_bytes, which is {largest}")
    _check_bounds(settings, places)
    return replace(settings, advertise=advertise)


def _check_bounds(settings: Settings, places: Mapping[str, str]) -> None:
    for least, most in [(name, name.replace("_min_", "_max_")) for name in OPTIONS if "_min_" in name]:
        low, high = getattr(settings, least), getattr(settings, most)
        if low > high:
            place = places.get(least) or places[most]
            raise SettingsError(f"{place}: {least} is {low}, and must be at most {most}, which is {high}")
