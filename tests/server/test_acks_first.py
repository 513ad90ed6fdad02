"""
The client that sent a request gets its response before the clients that the request wakes get theirs, and all of that
happens in one turn of the reactor.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.messages.fetch import FetchResponse
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.produce import ProduceResponse
from kgateway.messages.sync_group import SyncGroupRequest
from tests.server.clients_of_one import OneClient, OneGateway, fetch, produce
from tests.server.dispatcher import read

GROUP = "readers"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[OneGateway]:
    gateway = OneGateway(tmp_path)
    yield gateway
    gateway.stop()


def test_a_produce_is_answered_before_the_fetch_that_it_wakes(gateway: OneGateway) -> None:
    """
    The fetch is answered in the same turn.
    """
    consumer, producer = gateway.connect("consumer"), gateway.connect("producer")
    consumer.send((fetch(0), 12))
    producer.send((produce(), 9))
    gateway.turn()
    assert gateway.written == ["producer", "consumer"]
    assert read(ProduceResponse, 9, producer.received()).responses[0].partition_responses[0].base_offset == 0
    assert read(FetchResponse, 12, consumer.received()).responses[0].partitions[0].records


def test_produces_that_came_together_are_answered_first(gateway: OneGateway) -> None:
    consumer, producer = gateway.connect("consumer"), gateway.connect("producer")
    consumer.send((fetch(0), 12))
    producer.send((produce(), 9), (produce(), 9))
    assert gateway.written == ["producer"]
    gateway.turn()
    assert gateway.written == ["producer", "consumer"]


def test_a_stream_of_produces_does_not_starve_a_fetch(gateway: OneGateway) -> None:
    """
    It is answered at the end of each turn, with all that was produced in it.
    """
    consumer, producer = gateway.connect("consumer"), gateway.connect("producer")
    for turn in range(3):
        consumer.send((fetch(2 * turn), 12))
        producer.send((produce(), 9), (produce(), 9))
        gateway.turn()
        answer = read(FetchResponse, 12, consumer.received())
        assert answer.responses[0].partitions[0].high_watermark == 2 * turn + 2


def _join(member_id: str) -> JoinGroupRequest:
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


def _new_member(gateway: OneGateway, name: str) -> tuple[OneClient, str]:
    """
    A client, and the member id that it was given.
    """
    client = gateway.connect(name)
    client.send((_join(""), 5))
    gateway.turn()
    return client, read(JoinGroupResponse, 5, client.received()).member_id


def _sync(generation: int, member_id: str, *assignments: SyncGroupRequest.Assignment) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP, generation_id=generation, member_id=member_id, assignments=list(assignments)
    )


def test_a_leader_is_answered_before_the_members_for_whom_it_assigns(gateway: OneGateway) -> None:
    """
    SyncGroup of the leader ends the waits of all others. Their answers are not even encoded before.
    """
    members = [_new_member(gateway, name) for name in ("first", "second")]
    for client, member_id in members:
        client.send((_join(member_id), 5))
    gateway.clock.advance(0)
    joined = {member_id: read(JoinGroupResponse, 5, client.received()) for client, member_id in members}
    leader_id = next(iter(joined.values())).leader
    generation = next(iter(joined.values())).generation_id
    leader = next(client for client, member_id in members if member_id == leader_id)
    follower, follower_id = next(member for member in members if member[1] != leader_id)
    follower.send((_sync(generation, follower_id), 3))
    gateway.turn()
    gateway.written.clear()
    assignments = [
        SyncGroupRequest.Assignment(member_id=member_id, assignment=b"all") for member_id in (leader_id, follower_id)
    ]
    sync = gateway.dispatcher.routes[SyncGroupRequest.__spec__.key or 0, 3]
    assert sync.calls == 0
    leader.send((_sync(generation, leader_id, *assignments), 3))
    assert sync.calls == 1
    gateway.turn()
    assert sync.calls == 2
    names = {client: name for (client, _), name in zip(members, ("first", "second"), strict=True)}
    assert gateway.written == [names[leader], names[follower]]
