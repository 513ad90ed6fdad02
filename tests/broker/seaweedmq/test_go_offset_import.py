"""
Groups begin with the offsets that the Go gateway has stored.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.leader import go_offset_import as offset_import
from kgateway.broker.seaweedmq.leader.go_offset_import import UNDER_WAY, OffsetImport
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.broker.state_log import StateLog
from kgateway.cluster.partition import Appended
from kgateway.groups.records import Row, decoded, encoded
from kgateway.interfaces import KeyValue, ProducerEpoch
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import noted, refusal, result
from tests.broker.seaweed.real_reactor import until, wait
from tests.broker.seaweedmq.gateways import Start, group_log, running
from tests.broker.seaweedmq.test_topic_configs import Gate

TOPIC = "__consumer_offsets"
GROUPS = [f"team/{number}" for number in range(12)]  # in all partitions, in some of them several


@pytest.fixture
def kept(filer: Filer, namespace: str) -> dict[str, int]:
    """
    The offsets that the Go gateway has stored for the partition orders-3, by group.
    """
    offsets = {group_id: number for number, group_id in enumerate(GROUPS)}
    for group_id, offset in offsets.items():
        keep(filer, namespace, group_id, offset)
    return offsets


def keep(filer: Filer, namespace: str, group_id: str, offset: int) -> None:
    """
    Store an offset as the Go gateway does.
    """
    told = {"type": "offset", "value": offset, "committed_at": 7, "metadata": "x"}
    path = f"/topics/{namespace}/.meta/consumer_offsets/{group_id}/orders/3/offset"
    wait(filer.write(path, json.dumps(told).encode()))


def marker(filer: Filer, namespace: str) -> Any:
    """
    The file that says that the import is under way.
    """
    return wait(filer.entry(f"/topics/{namespace}/.meta/kgateway/{UNDER_WAY}"))


def committed(broker: SeaweedMQBroker, group_id: str) -> list[int]:
    """
    The offsets of a group, one for each time it was written.
    """
    pieces = result(group_log(broker, group_id).replay())
    found = []
    for key, value in (decoded(*pair) or (None, None) for piece in pieces for pair in piece):
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue) and key.group == group_id:
            found.append(value.offset)
    return found


def row(group_id: str, offset: int) -> KeyValue:
    key = OffsetCommitKey(group=group_id, topic="orders", partition=3)
    return encoded(Row(key, OffsetCommitValue(offset=offset, metadata="", commit_timestamp=9)))


def limit(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """
    Let state logs take this many batches in all, and no more.
    """
    append, left = StateLog.append, iter(range(count))

    def limited(log: StateLog, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        if next(left, None) is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "killed")
        return append(log, records, producer)

    monkeypatch.setattr(StateLog, "append", limited)


def test_they_are_taken_over_once(start: Start, filer: Filer, namespace: str, kept: dict[str, int]) -> None:
    """
    Later the commits of the groups count.
    """
    for _ in range(2):
        with running(start) as broker:
            assert {group_id: committed(broker, group_id) for group_id in GROUPS} == {
                group_id: [offset] for group_id, offset in kept.items()
            }
            assert marker(filer, namespace) is None
        for group_id in GROUPS:
            keep(filer, namespace, group_id, 100)


@pytest.mark.parametrize("count", [0, 1, 5, 11])
def test_an_end_amid_it_costs_nothing(
    count: int, start: Start, filer: Filer, namespace: str, kept: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The next start begins the import again, and all groups have their offsets; the one after that does not.
    """
    monkeypatch.setattr(offset_import, "_AT_ONCE", 1)
    with monkeypatch.context() as patch:
        limit(patch, count)
        broker = start()
        with pytest.raises(KafkaError, match="killed"):
            result(broker.start())
        result(broker.stop())
    assert marker(filer, namespace)
    for _ in range(2):
        with running(start) as broker:
            assert {group_id: committed(broker, group_id)[-1] for group_id in GROUPS} == kept
            assert marker(filer, namespace) is None
        for group_id in GROUPS:
            keep(filer, namespace, group_id, 100)


def test_a_topic_of_before_has_them_all(start: Start, filer: Filer, namespace: str) -> None:
    """
    Commits to a topic are kept, also if an import was about to create another one, and never did.
    """
    with running(start) as broker:
        noted(group_log(broker), [row("g", 9)])
    keep(filer, namespace, "g", 5)
    wait(filer.write(f"/topics/{namespace}/.meta/kgateway/{UNDER_WAY}", f"{Uuid.random()}\n".encode()))
    with running(start) as broker:
        assert committed(broker, "g") == [9]


@pytest.mark.usefixtures("kept")
def test_nobody_is_let_in_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A client's commit would be overwritten, so the client has to retry.
    """
    gate = Gate(monkeypatch, OffsetImport, "_write")
    gate.is_closed = True
    broker = start()
    started = broker.start()
    until(lambda: gate.waiting)
    assert TOPIC not in broker.view().topics
    error = refusal(lambda: broker.coordinator(Resource.GROUP, GROUPS[0]))
    assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    gate.open()
    result(started)
    assert TOPIC in broker.view().topics
    result(broker.stop())


@pytest.mark.usefixtures("kept")
def test_topics_that_come_meanwhile_are_served(start: Start, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A topic that another program creates during the import is served after it.
    """
    gate = Gate(monkeypatch, OffsetImport, "_write")
    gate.is_closed = True
    broker = start()
    started = broker.start()
    until(lambda: gate.waiting)
    rpc = BrokerRpc(broker._seaweed, namespace)
    wait(Deferred.fromCoroutine(rpc.configure("theirs", 1, None)))
    gate.open()
    result(started)
    until(lambda: "theirs" in broker.view().topics)
    result(broker.stop())
