"""
Every config of a consumer group in Kafka 4.3, as one table, and the values that hold for a group.

Each config has a setting of the gateway that gives its default, and two more that bound it: consumer.session.timeout.ms
has group.consumer.session.timeout.ms, and its bounds are group.consumer.min.session.timeout.ms and
group.consumer.max.session.timeout.ms.
"""

from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import ConfigRow, brief, integer, show, unknown
from kgateway.config.settings import BY_KAFKA_NAME, Settings
from kgateway.wire.errors import ErrorCode, KafkaError

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_KIND = "consumer."
_NOT_SERVED = ("share", "streams")


def _row(name: str, low: int, meaning: str) -> ConfigRow:
    synonym = f"group.{name}"
    return ConfigRow(name, integer(low), show(BY_KAFKA_NAME[synonym].default), meaning, synonym)


_ROWS = (
    _row(SESSION_TIMEOUT, 1, "How long a member may be silent before it is considered dead."),
    _row(HEARTBEAT_INTERVAL, 1, "How often a member is told to send a heartbeat."),
    _row(ASSIGNMENT_INTERVAL, 0, "How long the group waits from one assignment of its partitions to the next."),
)

GROUP_CONFIGS = {row.name: row for row in _ROWS}


def check_group_config(overrides: Overrides, settings: Settings) -> None:
    """
    Refuse with INVALID_CONFIG unknown names, values that are not allowed, and values out of bounds.
    """
    values = read_group_config(overrides)
    for name, value in values.items():
        for word, least in (("greater", "min"), ("less", "max")):
            bound, limit = _bound(least, name, settings)
            if value < limit if least == "min" else value > limit:
                raise _invalid(f"{name} must be {word} than or equal to {bound}")
    now = group_values(overrides, settings)
    if now[SESSION_TIMEOUT] <= now[HEARTBEAT_INTERVAL]:
        session, heartbeat = now[SESSION_TIMEOUT], now[HEARTBEAT_INTERVAL]
        raise _invalid(f"{SESSION_TIMEOUT} ({session}) must be above {HEARTBEAT_INTERVAL} ({heartbeat})")


def read_group_config(overrides: Overrides) -> dict[str, int]:
    """
    The values that were set; INVALID_CONFIG for unknown names and for values that are not allowed.
    """
    for name in overrides:
        _check_known(name)
    return {name: GROUP_CONFIGS[name].read(text) for name, text in overrides.items()}


def group_values(overrides: Overrides, settings: Settings) -> dict[str, int]:
    """
    The values that hold for a group. Overrides are brought within the bounds, which may have been others when they were
    set.
    """
    values: dict[str, int] = {row.name: getattr(settings, BY_KAFKA_NAME[row.synonym].name) for row in _ROWS}
    for name, value in read_group_config(overrides).items():
        least, most = (_bound(which, name, settings)[1] for which in ("min", "max"))
        values[name] = min(max(value, least), most)
    return values


def _bound(which: str, name: str, settings: Settings) -> tuple[str, int]:
    """
    One of the two bounds of a config: its name in Kafka, and its value.
    """
    bound = f"group.{_KIND}{which}.{name.removeprefix(_KIND)}"
    return bound, getattr(settings, BY_KAFKA_NAME[bound].name)


def _check_known(name: str) -> None:
    if name in GROUP_CONFIGS:
        return
    kind = name.partition(".")[0]
    if kind in _NOT_SERVED:
        raise _invalid(f"{brief(name)} is for {kind} groups, which are not served here")
    raise unknown("group", name, GROUP_CONFIGS)


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, reason)
