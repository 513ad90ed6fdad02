"""
Configs as Kafka and a gateway show them: all of a topic, of a group and of a broker, and their precedence when others
are set at run time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import NamedTuple

import pytest

from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.clients.admin import differences as why
from tests.clients.admin.requests import BROKERS, DELETE, GROUPS, SET, TOPICS, Change, Single, described
from tests.clients.admin.sides import TOPIC, Side
from tests.clients.client import PATIENCE_S

OWN = "1"
# The gateway has these alone.
EXTRA = {"kgateway.acks.fsync", "seaweedmq.acks", "seaweedmq.format"}


class Shown(NamedTuple):
    """
    The description of a config.
    """

    value: str | None
    source: int
    type: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...]


def configs(side: Side, kind: int, name: str) -> dict[str, Shown]:
    """
    All configs of a resource.
    """
    result = described(side, kind, name)
    assert result.error_code == 0, result.error_message
    return {
        found.name: Shown(
            found.value,
            found.config_source,
            found.config_type,
            found.read_only,
            found.is_sensitive,
            tuple((synonym.name, synonym.value, synonym.source) for synonym in found.synonyms),
        )
        for found in result.configs
    }


def differing(kafka: Mapping[str, Shown], gateway: Mapping[str, Shown]) -> dict[str, set[str]]:
    """
    The attributes in which configs that both have differ.
    """
    both = {name: (kafka[name], gateway[name]) for name in kafka if name in gateway}
    fields = Shown._fields
    found = {name: {f for f in fields if getattr(one, f) != getattr(two, f)} for name, (one, two) in both.items()}
    return {name: differ for name, differ in found.items() if differ}


# config -> which attributes differ, and why; the same for topics and brokers, as far as sources are concerned
_IN_TIMES = ({"synonyms"}, why.IN_MILLISECONDS)
TIMES = dict.fromkeys(("retention.ms", "segment.ms", "flush.ms", "segment.jitter.ms"), _IN_TIMES)
BROKERS_TIMES = {
    config: ({"value", "synonyms"}, why.IN_MILLISECONDS)
    for config in ("log.retention.ms", "log.roll.ms", "log.flush.interval.ms", "log.roll.jitter.ms")
}
BROKERS_OWN: dict[str, tuple[set[str], str]] = {
    "listeners": ({"value", "read_only", "synonyms"}, why.ITS_OWN_PLACES),
    "advertised.listeners": ({"value", "source", "synonyms"}, why.ITS_OWN_PLACES),
    "log.dirs": ({"value", "synonyms"}, why.ITS_OWN_PLACES),
    "node.id": ({"source", "synonyms"}, why.OWN_DEFAULTS),
    "num.partitions": ({"source", "synonyms"}, why.OWN_DEFAULTS),
    "offsets.topic.num.partitions": ({"value", "synonyms"}, why.OWN_DEFAULTS),
    "queued.max.request.bytes": ({"value", "synonyms"}, why.OWN_DEFAULTS),
    "log.cleaner.backoff.ms": ({"read_only"}, why.READ_ONLY),
    "log.cleaner.dedupe.buffer.size": ({"read_only"}, why.READ_ONLY),
    "producer.id.expiration.ms": ({"read_only"}, why.READ_ONLY),
    "group.consumer.assignment.interval.ms": ({"read_only"}, why.READ_ONLY),
    "min.insync.replicas": ({"source", "synonyms"}, why.NO_ELR),
}


def test_topic(sides: tuple[Side, Side]) -> None:
    """
    A topic has all configs that Kafka has, with its values, types and flags, and a few of its own.
    """
    kafka, gateway = (configs(side, TOPICS, TOPIC) for side in sides)
    assert gateway.keys() == kafka.keys() | EXTRA, why.EXTRA
    named = TIMES | {"min.insync.replicas": BROKERS_OWN["min.insync.replicas"]}
    assert differing(kafka, gateway) == {name: fields for name, (fields, _) in named.items()}


def test_group(sides: tuple[Side, Side]) -> None:
    """
    A group has Kafka's configs of consumer groups, and none of share groups and streams groups.
    """
    kafka, gateway = (configs(side, GROUPS, "any") for side in sides)
    assert gateway.keys() == {name for name in kafka if name.startswith("consumer.")}, why.OTHER_TYPES
    assert differing(kafka, gateway) == {}


def test_broker(sides: tuple[Side, Side]) -> None:
    """
    A broker has those of Kafka's configs that affect it, with Kafka's values, types and flags.
    """
    kafka, gateway = (configs(side, BROKERS, OWN) for side in sides)
    assert gateway.keys() - kafka.keys() == EXTRA, why.EXTRA
    named = BROKERS_TIMES | BROKERS_OWN
    assert differing(kafka, gateway) == {name: fields for name, (fields, _) in named.items()}


def alter(side: Side, kind: int, name: str, *changes: Change) -> None:
    """
    Change configs, and check that both servers succeed.
    """
    single = [Single.Config(name=key, config_operation=what, value=value) for key, what, value in changes]
    resource = Single(resource_type=kind, resource_name=name, configs=single)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    [answer] = side.ask(request, 1).responses
    assert answer.error_code == 0, answer.error_message


def until(side: Side, kind: int, name: str, key: str, wanted: Callable[[Shown], bool]) -> Shown:
    """
    The description of a config, as soon as it is the wanted one: Kafka's broker learns of it from its controller.
    """
    deadline = monotonic() + PATIENCE_S
    while not wanted(shown := configs(side, kind, name)[key]):
        assert monotonic() < deadline, shown
    return shown


@pytest.mark.parametrize(
    ("key", "behind", "values"),
    [
        ("segment.bytes", "log.segment.bytes", ("2000000", "3000000", "4000000")),
        ("max.message.bytes", "message.max.bytes", ("2000000", "3000000", "4000000")),
        ("cleanup.policy", "log.cleanup.policy", ("compact", "delete,compact", "delete")),
        ("compression.type", "compression.type", ("gzip", "zstd", "lz4")),
        ("message.timestamp.type", "log.message.timestamp.type", ("LogAppendTime", "CreateTime", "LogAppendTime")),
        ("retention.bytes", "log.retention.bytes", ("5", "6", "7")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_precedence(key: str, behind: str, values: tuple[str, str, str], sides: tuple[Side, Side]) -> None:
    """
    A topic's own value precedes that of the broker, then that of all brokers, then the default; a description shows
    each with those behind it, of the topic and of the broker.
    """
    steps: list[tuple[int, str, Change]] = [
        (BROKERS, "", (behind, SET, values[0])),
        (BROKERS, OWN, (behind, SET, values[1])),
        (TOPICS, TOPIC, (key, SET, values[2])),
        (BROKERS, "", (behind, DELETE, None)),
        (TOPICS, TOPIC, (key, DELETE, None)),
        (BROKERS, OWN, (behind, DELETE, None)),
    ]
    told: list[list[tuple[Shown, Shown]]] = [[], []]
    for seen, side in zip(told, sides, strict=True):
        for count, (kind, name, change) in enumerate(steps):
            alter(side, kind, name, change)
            levels = _levels(count)
            topic = until(side, TOPICS, TOPIC, key, partial(_has, levels[0]))
            broker = until(side, BROKERS, OWN, behind, partial(_has, levels[1]))
            seen.append((topic, broker))
    assert told[0] == told[1]
    assert [topic.source for topic, _ in told[1]] == [3, 2, 1, 1, 2, 5]


def _has(levels: int, shown: Shown) -> bool:
    """
    Whether the config has this many values, of which this is the first.
    """
    return len(shown.synonyms) == levels and shown.value == shown.synonyms[0][1]


def _levels(step: int) -> tuple[int, int]:
    """
    The number of values of the topic's config and of the broker's, after each step.
    """
    return [(2, 2), (3, 3), (4, 3), (3, 2), (2, 2), (1, 1)][step]


@pytest.mark.parametrize("name", ["", OWN])
def test_set_at_run_time(name: str, sides: tuple[Side, Side]) -> None:
    """
    Descriptions without a broker id show only what is set for all brokers.
    """
    told = []
    for side in sides:
        alter(side, BROKERS, name, ("log.segment.bytes", SET, "2000000"))
        until(side, BROKERS, OWN, "log.segment.bytes", lambda shown: shown.value == "2000000")
        found = configs(side, BROKERS, "")
        found.pop("min.insync.replicas", None)  # Kafka sets it by itself: see NO_ELR
        told.append(found)
        alter(side, BROKERS, name, ("log.segment.bytes", DELETE, None))
        until(side, BROKERS, OWN, "log.segment.bytes", lambda shown: shown.value != "2000000")
    assert told[0] == told[1]
    assert [*told[1]] == ([] if name else ["log.segment.bytes"])
