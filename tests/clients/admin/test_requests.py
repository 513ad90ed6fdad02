"""
The same requests to Kafka and to a gateway have equal responses, error codes and texts, except for the differences
named here with their reasons.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tests.clients.admin import differences as why
from tests.clients.admin.requests import (
    APPEND,
    BROKERS,
    DELETE,
    GROUPS,
    LOGGERS,
    METRICS,
    SET,
    SUBTRACT,
    TOPICS,
    Ask,
    Change,
    alter,
    alter_twice,
    create,
    delete,
    delete_records,
    describe,
    elect,
    grow,
    log_dirs,
    move,
    producers,
    quorum,
    reassign,
    reassignments,
    replace,
    resources,
    unregister,
    update,
)
from tests.clients.admin.sides import GONE, TOPIC, Side, same

NO_KINDS = (0, 1, 3, 64)
SESSION = "consumer.session.timeout.ms"


class Kind(NamedTuple):
    """
    A kind of resource whose configs are altered in every way that may be wrong.
    """

    number: int
    name: str
    config: str  # a number
    good: str
    listed: str = ""  # a list of cleanup policies


KINDS = {
    "topic": Kind(TOPICS, TOPIC, "retention.ms", "50000", "cleanup.policy"),
    "broker": Kind(BROKERS, "1", "log.retention.ms", "50000", "log.cleanup.policy"),
    "all brokers": Kind(BROKERS, "", "log.retention.ms", "50000", "log.cleanup.policy"),
    "group": Kind(GROUPS, "g", SESSION, "50000"),
    "logger": Kind(LOGGERS, "1", "root", "WARN"),
    "metrics": Kind(METRICS, "m", "interval.ms", "50000"),
}


def _altering() -> Iterator[tuple[str, Ask]]:
    for word, (kind, name, config, good, listed) in KINDS.items():
        single: dict[str, Sequence[Change]] = {
            "nothing": [],
            "a value": [(config, SET, good)],
            "a wrong value": [(config, SET, "abc")],
            "an empty value": [(config, SET, "")],
            "no value": [(config, SET, None)],
            "an unknown name": [("nope", SET, "1")],
            "an empty name": [("", SET, "1")],
            "a good and an unknown name": [(config, SET, good), ("nope", SET, "1")],
            "a name twice": [(config, SET, good), (config, DELETE, None)],
            "the same twice": [(config, SET, good), (config, SET, good)],
            "deleted": [(config, DELETE, None)],
            "deleted with a value": [(config, DELETE, "5")],
            "an unknown name deleted": [("nope", DELETE, None)],
            "appended to no list": [(config, APPEND, "1")],
            "subtracted from no list": [(config, SUBTRACT, "1")],
            "appended to an unknown name": [("nope", APPEND, "1")],
            "appended without a value": [(config, APPEND, None)],
            "an unknown operation": [(config, 7, "1")],
            "a negative operation": [(config, -1, "1")],
        }
        for what, changes in single.items():
            yield f"{word}: {what}", alter(kind, name, *changes)
        whole: dict[str, Sequence[tuple[str, str | None]]] = {
            "nothing": [],
            "a value": [(config, good)],
            "a wrong value": [(config, "abc")],
            "an empty value": [(config, "")],
            "no value": [(config, None)],
            "an unknown name": [("nope", "1")],
            "a name twice": [(config, good), (config, good)],
        }
        for what, values in whole.items():
            yield f"{word}: all at once, {what}", replace(kind, name, *values)
        lists: dict[str, Sequence[Change]] = {
            "appended": [(listed, APPEND, "compact")],
            "subtracted": [(listed, SUBTRACT, "delete")],
            "what is not there subtracted": [(listed, SUBTRACT, "compact")],
            "wrong item appended": [(listed, APPEND, "bogus")],
            "no items": [(listed, SET, "")],
            "empty items": [(listed, SET, "delete,,compact")],
        }
        for what, changes in lists.items() if listed else ():
            yield f"{word}: list, {what}", alter(kind, name, *changes)
        yield f"{word}: named twice", alter_twice(kind, name)


def _naming() -> Iterator[tuple[str, Ask]]:
    for kind in (TOPICS, BROKERS, LOGGERS, METRICS, GROUPS, *NO_KINDS):
        for name in ("", "7", "x", GONE, "a b", "01"):
            yield f"alter {kind} {name!r}", alter(kind, name)
            yield f"all at once {kind} {name!r}", replace(kind, name, ("retention.ms", "1"))
            yield f"describe {kind} {name!r}", describe(kind, name)
    yield "describe an unknown config", describe(TOPICS, TOPIC, "nope")
    for kind in (TOPICS, BROKERS, LOGGERS, METRICS, GROUPS):
        yield f"resources of {kind}", resources(kind)
    yield "all resources", resources()
    yield "resources of no kind", resources(1)
    yield "first version of resources", resources(version=0)


TOPIC_VALUES = {
    "cleanup.policy": ["bogus", ",", " delete , compact ", "Delete", "delete,delete"],
    "compression.type": ["x", ""],
    "preallocate": ["maybe", "TRUE", ""],
    "min.cleanable.dirty.ratio": ["2", "x", "-1", "NaN"],
    "segment.bytes": ["5", "99999999999", "1.5"],
    "compression.gzip.level": ["20", "0", "x"],
    "compression.lz4.level": ["50", "0"],
    "compression.zstd.level": ["99", "-999999"],
    "follower.replication.throttled.replicas": ["x", "0:1,1:2", "*", "none"],
    "leader.replication.throttled.replicas": ["0:x"],
    "retention.ms": ["-5", "99999999999999999999999", " 5 ", "+5"],
    "retention.bytes": ["-5"],
    "min.insync.replicas": ["0", "1"],
    "message.timestamp.type": ["x"],
    "max.message.bytes": ["-1"],
    "delete.retention.ms": ["-1"],
    "flush.messages": ["0"],
    "index.interval.bytes": ["-1"],
    "local.retention.bytes": ["-3"],
    "local.retention.ms": ["5"],
    "max.compaction.lag.ms": ["0"],
    "segment.index.bytes": ["1"],
    "segment.ms": ["0"],
    "segment.jitter.ms": ["-1"],
    "file.delete.delay.ms": ["-1"],
    "remote.storage.enable": ["true"],
    "remote.log.copy.disable": ["x"],
}
BROKER_VALUES = {
    "num.partitions": ["9"],
    "node.id": ["5"],
    "log.dirs": ["/x"],
    "advertised.listeners": ["PLAINTEXT://localhost:1"],
    "log.segment.bytes": ["5", "1048576"],
    "message.max.bytes": ["-1", "100"],
    "log.cleanup.policy": ["bogus"],
    "compression.type": ["bogus", "gzip"],
    "group.initial.rebalance.delay.ms": ["3"],
    "auto.create.topics.enable": ["false"],
    "delete.topic.enable": ["false"],
    "log.message.timestamp.type": ["x"],
    "log.retention.check.interval.ms": ["1"],
    "offsets.retention.minutes": ["1"],
    "connections.max.idle.ms": ["100"],
    "log.index.interval.bytes": ["10"],
    "log.preallocate": ["true"],
    "log.roll.ms": ["5", "0"],
    "log.retention.bytes": ["-5"],
    "fetch.max.bytes": ["2000"],
    "log.segment.delete.delay.ms": ["1"],
    "unclean.leader.election.enable": ["true"],
    "producer.id.expiration.ms": ["5"],
    "num.io.threads": ["7"],
    "min.insync.replicas": ["0", "1"],
    "leader.replication.throttled.rate": ["1000", "0", "-1", "x", "9223372036854775808"],
    "follower.replication.throttled.rate": ["1000", "-1"],
    "replica.alter.log.dirs.io.max.bytes.per.second": ["1000", "-1"],
}


def _values() -> Iterator[tuple[str, Ask]]:
    for config, texts in TOPIC_VALUES.items():
        for text in texts:
            yield f"topic {config}={text!r}", alter(TOPICS, TOPIC, (config, SET, text))
    for config, texts in BROKER_VALUES.items():
        for text in texts:
            for name in ("", "1"):
                yield f"broker {name!r} {config}={text!r}", alter(BROKERS, name, (config, SET, text))
    yield "lags", alter(TOPICS, TOPIC, ("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50"))
    yield "several settings", alter(BROKERS, "1", ("num.partitions", SET, "1"), ("log.dirs", SET, "1"))
    yield "a setting deleted", alter(BROKERS, "1", ("num.partitions", DELETE, None))
    for value in ("5", "999999999"):
        yield f"group bounds {value}", alter(GROUPS, "g", (SESSION, SET, value))
    for value in ("DEBUG", "TRACE", "FATAL", "debug", ""):
        yield f"root={value}", alter(LOGGERS, "1", ("root", SET, value))


def _topics() -> Iterator[tuple[str, Ask]]:
    for name in (TOPIC, "", ".", "..", "a b", "x" * 250, "__cluster_metadata", "new"):
        yield f"create {name[:20]!r}", create(name)
    for count in (0, -2, -1, 20_000):
        yield f"create {count} partitions", create("new", count)
    for factor in (0, -2, -1, 3):
        yield f"create {factor} replicas", create("new", 1, factor)
    yield "create assigned and counted", create("new", 1, -1, {0: [1]})
    yield "create assigned with a factor", create("new", -1, 1, {0: [1]})
    nodes: dict[str, dict[int, list[int]]] = {
        "well": {0: [1], 1: [1]},
        "to nobody": {0: [5]},
        "twice to one": {0: [1, 1]},
        "at least 1": {1: [1]},
        "to none": {0: []},
    }
    for what, assigned in nodes.items():
        yield f"create assigned {what}", create("new", -1, -1, assigned)
    yield "create with an unknown config", create("new", nope="1")
    yield "create with a null", create("new", retention_ms=None)
    yield "create with a wrong value", create("new", retention_ms="x")
    for count in (2, 1, 0, -1, 3):
        yield f"grow to {count}", grow(TOPIC, count)
    for name in (GONE, "", "a b"):
        yield f"grow {name!r}", grow(name, 3)
        yield f"delete {name!r}", delete(name)
        yield f"delete records of {name!r}", delete_records(name, p0=1)
    assignments: list[list[list[int]]] = [[[1]], [[1], [1]], [[9]], [[1, 1]], [[]], []]
    for assignment in assignments:
        yield f"grow assigned {assignment}", grow(TOPIC, 3, assignment)
    yield "delete records beyond the end", delete_records(TOPIC, p0=99, p1=-5, p9=0)
    yield "delete records", delete_records(TOPIC, p0=2, p1=-1)
    yield "delete records again", delete_records(TOPIC, p0=1)


def _clusters() -> Iterator[tuple[str, Ask]]:
    for version in (1, 2, 3, 4, 5):
        yield f"log dirs v{version}", log_dirs({TOPIC: [0, 1]}, version)
    yield "log dirs of some", log_dirs({TOPIC: [0, 7, -1], GONE: [0]})
    yield "log dirs of none", log_dirs({})
    yield "move here", move(("DATA", TOPIC, [0, 1]))
    yield "move elsewhere", move(("/nope", TOPIC, [0]), ("nope", GONE, [0]))
    yield "move what is not there", move(("DATA", TOPIC, [9, -1]), ("DATA", GONE, [0]), ("DATA", "a b", [0]))
    yield "move twice", move(("/nope", TOPIC, [0]), ("DATA", TOPIC, [0, 1]))
    yield "move nothing", move()
    for kind in (0, 1, 2, -1):
        yield f"elect all, kind {kind}", elect(None, kind)
        yield f"elect some, kind {kind}", elect({TOPIC: [0, 1, 9, 0], GONE: [0], "": [1], "a b": [0]}, kind)
    yield "elect v0", elect({TOPIC: [0]}, version=0)
    yield "elect v1", elect({TOPIC: [0]}, version=1)
    yield "elect none", elect({})
    for replicas in ([1], [5], [1, 2], [1, 1], [-1], [], None):
        yield f"reassign to {replicas}", reassign(TOPIC, 0, replicas)
        yield f"reassign what is not there to {replicas}", reassign(GONE, 0, replicas)
        yield f"reassign partition 7 to {replicas}", reassign(TOPIC, 7, replicas)
    yield "reassign v0", reassign(TOPIC, 0, [1], 0)
    yield "reassign with the same factor", reassign(TOPIC, 0, [1], changes_factor=False)
    yield "reassign with another factor", reassign(TOPIC, 0, [1, 2], changes_factor=False)
    for topics in (None, {TOPIC: [0, 9], GONE: [0]}):
        yield f"reassignments of {topics and [*topics]}", reassignments(topics)
    yield "producers", producers({TOPIC: [0, 9, -1], GONE: [0, 1], "": [0], "a b": [0]})
    yield "no producers", producers({})
    yield "quorum", quorum("__cluster_metadata")
    for name, level in {
        "group.version": (0, 1, 9, -1),
        "metadata.version": (0, 7, 20, 30, 99),
        "share.version": (0, 1),
        "nope": (0, 1),
        "": (1,),
    }.items():
        for wanted in level:
            for kind in (0, 1, 2, 9):
                yield f"{name} {wanted} by {kind}", update((name, wanted, kind))
    yield "no features", update()
    yield "a feature twice", update(("group.version", 1, 1), ("group.version", 1, 1))
    yield "a good and a bad feature", update(("group.version", 1, 1), ("nope", 1, 1))
    for version in (0, 1):
        yield f"group.version v{version}", update(("group.version", 1, 1), version=version)
    yield "unregister 7", unregister(7)
    yield "unregister -1", unregister(-1)


CASES: dict[str, Ask] = dict([*_altering(), *_naming(), *_values(), *_topics(), *_clusters()])


class Differs(NamedTuple):
    """
    The error codes of Kafka and of the gateway, and why they differ.
    """

    why: str
    kafka: int | None  # `None` where either code may occur
    gateway: int


def _different() -> Iterator[tuple[str, Differs]]:
    yield from _different_of_brokers()
    yield from _different_of_log_and_metrics()
    yield from _different_of_topics()
    yield from _different_of_clusters()


def _different_of_brokers() -> Iterator[tuple[str, Differs]]:
    for word in ("broker", "all brokers"):
        for what in ("appended to no list", "subtracted from no list", "appended to an unknown name"):
            yield f"{word}: {what}", Differs(why.ONE_WORDING, 40, 40)
        for what in ("an unknown name", "an empty name", "a good and an unknown name"):
            yield f"{word}: {what}", Differs(why.NAMES_NOTHING, 0, 40)
    yield "broker: all at once, an unknown name", Differs(why.NAMES_NOTHING, 0, 40)
    for name in ("", "1"):
        yield f"broker {name!r} log.roll.ms='0'", Differs(why.ONE_WORDING, 42, 42)
        yield f"broker {name!r} num.io.threads='7'", Differs(why.NAMES_NOTHING, 0, 40)
        yield f"broker {name!r} producer.id.expiration.ms='5'", Differs(why.READ_ONLY, 0, 42)
    for what in ("nothing", "a value"):
        yield f"all brokers: all at once, {what}", Differs(why.NO_ELR, 40, 0)
    yield "all brokers: all at once, an unknown name", Differs(why.NO_ELR, 40, 40)
    yield "all at once 4 ''", Differs(why.NO_ELR, 40, 40)
    yield "broker '1' min.insync.replicas='1'", Differs(why.NO_ELR, 40, 0)
    yield "describe 4 ''", Differs(why.NO_ELR, 0, 0)  # the config is unset, and in Kafka this is an error
    for what in ("alter 4 '01'", "all at once 4 '01'", "alter 8 '01'"):
        yield what, Differs(why.MORE_CAREFUL, 0, 42)


def _different_of_log_and_metrics() -> Iterator[tuple[str, Differs]]:
    for word in ("topic", "group", "logger"):
        for what in ("an unknown operation", "a negative operation"):
            yield f"{word}: {what}", Differs(why.KAFKAS_BUGS, -1, 42)
    unread: tuple[str, ...] = ("no value", "a name twice", "the same twice", "appended without a value", "named twice")
    unread += tuple(f"all at once, {what}" for what in unread)
    for name in CASES:
        kind, _, what = name.partition(": ")
        if (kind == "metrics" and what not in unread) or (" 16 " in name and "resources" not in name):
            yield name, Differs(why.NO_METRICS, None, 42)


def _different_of_topics() -> Iterator[tuple[str, Differs]]:
    yield "topic min.cleanable.dirty.ratio='NaN'", Differs(why.MORE_CAREFUL, 0, 40)
    yield "topic remote.storage.enable='true'", Differs(why.NO_TIERS, 40, 40)
    yield f"create {'x' * 20!r}", Differs(why.SHORTER, 17, 17)
    yield "create 3 replicas", Differs(why.NO_COPIES, 38, 0)
    for what in ("'new'", "-1 partitions", "-1 replicas", "assigned well"):
        yield f"create {what}", Differs(why.NO_ID, 0, 0)


def _different_of_clusters() -> Iterator[tuple[str, Differs]]:
    yield "quorum", Differs(why.NO_QUORUM, 0, 35)
    yield "group.version 0 by 2", Differs(why.FEATURES, 0, 95)
    for kind in (1, 2):
        for level in (0, 7, 20, 99):
            yield f"metadata.version {level} by {kind}", Differs(why.FEATURES, 95, 95)
        yield f"share.version 1 by {kind}", Differs(why.FEATURES, 0, 95)
    yield "share.version 0 by 1", Differs(why.FEATURES, 95, 95)
    yield "share.version 0 by 2", Differs(why.FEATURES, 0, 95)


DIFFERENT = dict(_different())


@pytest.mark.parametrize("name", CASES)
def test_same(name: str, sides: tuple[Side, Side]) -> None:
    """
    Both send the same response, except for deliberate differences.
    """
    kafka, gateway = (CASES[name](side) for side in sides)
    if name not in DIFFERENT:
        assert same(kafka, gateway), f"\nKafka:   {kafka}\ngateway: {gateway}"
        return
    assert not same(kafka, gateway), "this is no difference any more"
    differs = DIFFERENT[name]
    assert _code(gateway) == differs.gateway, f"\nKafka:   {kafka}\ngateway: {gateway}"
    assert differs.kafka in (None, _code(kafka)), f"\nKafka:   {kafka}\ngateway: {gateway}"


def test_differences_are_of_cases() -> None:
    """
    Each difference belongs to a request.
    """
    assert DIFFERENT.keys() <= CASES.keys()


def _code(answer: Any) -> int:
    """
    The first error code in a response, or 0.
    """
    if isinstance(answer, dict):
        own = answer.get("error_code", 0)
        return int(own) or next((code for value in answer.values() if (code := _code(value))), 0)
    return next((code for item in answer if (code := _code(item))), 0) if isinstance(answer, list) else 0
