"""
Offsets are exported to the files of the Go gateway.
"""

import json

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.leader.go_offset_export import OffsetExport
from kgateway.broker.seaweedmq.leader.go_offset_files import OffsetFiles
from kgateway.groups.records import Row, decoded, encoded
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.broker.behaviour import noted, result
from tests.broker.seaweed.real_reactor import until, wait
from tests.broker.seaweedmq.gateways import Start, group_log, leader, running

KEY = OffsetCommitKey(group="g", topic="orders", partition=3)
A, B, C = (b"\0\1a", b"\0\1b", b"\0\1c")  # keys of offsets
BEHIND_S, AGAIN_S, FLUSH_S = 0.5, 5.0, 10.0


class Files(OffsetFiles):
    """
    Files that record writes, and fail when a test says so.
    """

    def __init__(self) -> None:
        self.tried: list[tuple[bytes, bytes | None]] = []
        self.failing: dict[bytes, Exception] = {}
        self.answer: Deferred[None] | None = None  # which all wait for

    async def write(self, key: bytes, value: bytes | None) -> None:
        self.tried.append((key, value))
        if self.answer:
            await self.answer
        if key in self.failing:
            raise self.failing[key]

    async def catch_up(self, key: bytes, value: bytes) -> None:
        await self.write(key, b"seen: " + value)


class World:
    """
    An export into such files.
    """

    def __init__(self) -> None:
        self.clock, self.files = Clock(), Files()
        self.exported = OffsetExport(self.files, self.clock)

    def written(self, seconds: float) -> list[tuple[bytes, bytes | None]]:
        """
        The writes that are tried within this time.
        """
        self.files.tried = []
        self.clock.advance(seconds)
        return self.files.tried


@pytest.fixture
def world() -> World:
    return World()


def value(offset: int, committed_at: int = 5) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, metadata="m", commit_timestamp=committed_at)


def told(filer: Filer, path: str) -> int:
    """
    The offset in a file.
    """
    entry = wait(filer.entry(path))
    assert entry
    return int(json.loads(entry.content)["value"])


@pytest.fixture
def path(namespace: str) -> str:
    """
    The path of the file for the key.
    """
    return f"/topics/{namespace}/.meta/consumer_offsets/g/orders/3/offset"


def test_they_are_written_behind(world: World) -> None:
    """
    The last offset of each key is written, and other rows are not.
    """
    world.exported.export([(A, b"1"), (b"\0\2a", b"a group"), (B, b"1"), (A, b"2")])
    assert world.written(BEHIND_S / 2) == []
    assert world.written(BEHIND_S / 2) == [(A, b"2"), (B, b"1")]
    assert world.written(AGAIN_S) == []


def test_what_is_left_is_tried_again(world: World) -> None:
    """
    The cluster fails amid the writes. Newer offsets are written before those that failed.
    """
    world.exported.export([(A, b"1"), (B, b"1"), (C, b"1")])
    world.files.failing = {B: RpcError(Status.UNAVAILABLE, "no answer")}
    assert world.written(BEHIND_S) == [(A, b"1"), (B, b"1")]
    world.exported.export([(B, b"2")])
    assert world.written(BEHIND_S) == []
    assert world.written(AGAIN_S) == [(B, b"2")]
    world.files.failing = {}
    assert world.written(AGAIN_S) == [(B, b"2"), (C, b"1")]
    world.exported.export([(A, b"3")])
    assert world.written(BEHIND_S) == [(A, b"3")]


def test_each_trouble_is_told_once(world: World) -> None:
    """
    Repeated failures are not logged again.
    """
    with capturedLogs() as logged:
        for number in (1, 2):
            world.exported.export([(A, b"1")])
            world.files.failing = {A: RpcError(Status.UNAVAILABLE, "no answer")}
            for _ in range(3):
                world.written(AGAIN_S)
            world.files.failing = {}
            world.written(AGAIN_S)
            assert len(logged) == number


def test_others_do_not_wait_for_what_is_refused(world: World) -> None:
    """
    A refused offset is tried again, too, and earlier commits are compared.
    """
    world.exported.export([(A, b"1"), (B, b"1")])
    world.exported.compare({C: b"1"})
    world.files.failing = {A: FilerRefused("/a", "no")}
    assert world.written(BEHIND_S) == [(A, b"1"), (B, b"1"), (C, b"seen: 1")]
    assert world.written(AGAIN_S) == [(A, b"1")]
    world.files.failing = {}
    assert world.written(AGAIN_S) == [(A, b"1")]
    assert world.written(AGAIN_S) == []


def test_what_was_before_the_start_is_looked_at(world: World) -> None:
    """
    Earlier offsets are compared until that succeeds, except those that changed since.
    """
    world.exported.compare({A: b"1", B: b"1"})
    world.exported.export([(A, b"2")])
    world.files.failing = {B: RpcError(Status.UNAVAILABLE, "no answer")}
    assert world.written(BEHIND_S) == [(A, b"2"), (B, b"seen: 1")]
    world.files.failing = {}
    assert world.written(AGAIN_S) == [(B, b"seen: 1")]
    assert world.written(AGAIN_S) == []


def test_at_the_end_all_is_written(world: World) -> None:
    """
    Waiting offsets are written at once, after the current write; earlier offsets may take longer.
    """
    world.exported.export([(A, b"1"), (B, b"1")])
    world.exported.compare({C: b"1"})
    world.files.answer = Deferred()
    assert world.written(BEHIND_S) == [(A, b"1")]
    world.exported.export([(A, b"2")])
    flushed = world.exported.flush()
    assert (flushed.called, world.files.tried) == (False, [(A, b"1")])
    world.files.answer.callback(None)
    assert world.files.tried == [(A, b"1"), (B, b"1"), (A, b"2")]
    result(flushed)
    world.exported.export([(B, b"2")])
    result(world.exported.flush())
    assert world.files.tried[3:] == [(B, b"2")]
    assert world.clock.getDelayedCalls() == []


def test_the_end_does_not_wait_for_long(world: World) -> None:
    """
    A filer that does not answer delays the stop for a few seconds.
    """
    world.exported.export([(A, b"1")])
    world.files.answer = Deferred()
    flushed = world.exported.flush()
    assert world.written(FLUSH_S / 2) == []
    assert not flushed.called
    world.clock.advance(FLUSH_S / 2)
    result(flushed)


def test_nothing_is_written_for_others(world: World) -> None:
    """
    When another gateway leads, the current write is cancelled, and none follows.
    """
    world.exported.export([(A, b"1"), (B, b"1")])
    world.files.answer = Deferred()
    assert world.written(BEHIND_S) == [(A, b"1")]
    world.exported.lose()
    world.exported.export([(C, b"1")])
    world.exported.compare({C: b"1"})
    assert world.written(AGAIN_S) == []
    result(world.exported.flush())
    assert world.files.tried == []


def test_a_stop_leaves_nothing_behind(start: Start, filer: Filer, path: str) -> None:
    """
    A commit from just before the stop is in its file.
    """
    with running(start) as broker:
        noted(group_log(broker), [encoded(Row(KEY, value(9)))])
        exported = leader(broker)._parts.offsets
    assert told(filer, path) == 9
    exported.export([encoded(Row(KEY, value(10)))])
    assert exported._soon is None


@pytest.mark.parametrize(("committed_at", "expected"), [(4, 12), (5, 12), (6, 10)])
def test_a_kill_is_made_good(
    committed_at: int, expected: int, start: Start, filer: Filer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Lost writes are made when the group is loaded, unless another program has committed later.
    """
    row = {"type": "offset", "value": 10, "committed_at": committed_at, "metadata": ""}
    with running(start) as broker, monkeypatch.context() as killed:
        killed.setattr(OffsetExport, "export", lambda _exported, _records: None)
        noted(group_log(broker), [encoded(Row(KEY, value(11))), encoded(Row(KEY, value(12)))])
    wait(filer.write(path, json.dumps(row).encode()))
    with running(start) as broker:
        assert [*result(group_log(broker).replay())]
        exported = leader(broker)._parts.offsets
        until(lambda: not (exported._unsure or exported._writing))
    assert told(filer, path) == expected


def test_commits_are_written_for_the_go_gateway(start: Start, filer: Filer, namespace: str) -> None:
    """
    Each commit is in its file soon; when the offset is deleted, so is the file.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/team/billing/orders/3/offset"
    key = OffsetCommitKey(group="team/billing", topic="orders", partition=3)
    with running(start) as broker:
        log = group_log(broker, "team/billing")
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=41, metadata="m", commit_timestamp=5)))])
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=42, metadata="m", commit_timestamp=5)))])
        entry = until(lambda: wait(filer.entry(path)))
        assert json.loads(entry.content) == {"type": "offset", "value": 42, "committed_at": 5, "metadata": "m"}
        noted(log, [encoded(Row(key, None))])
        until(lambda: wait(filer.entry(path)) is None)


@pytest.mark.parametrize("is_restored", [False, True])
def test_offsets_of_the_go_gateway_are_taken_over_once(
    is_restored: bool, start: Start, filer: Filer, namespace: str
) -> None:
    """
    A cluster without groups of ours begins with the offsets of the Go gateway, also if those were restored over HTTP;
    later our own count.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/team/billing/orders/3/offset"
    told = {"type": "offset", "value": 42, "committed_at": 7, "metadata": "x"}
    wait((filer.files.put if is_restored else filer.write)(path, json.dumps(told).encode()))
    wait(filer.write(f"/topics/{namespace}/.meta/consumer_offsets/g/orders/none/offset", b"{}"))
    key = OffsetCommitKey(group="team/billing", topic="orders", partition=3)
    for _ in range(2):
        with running(start) as broker:
            pieces = result(group_log(broker, "team/billing").replay())
            rows = [decoded(*pair) for piece in pieces for pair in piece]
            assert rows == [Row(key, OffsetCommitValue(offset=42, metadata="x", commit_timestamp=7))]
        wait(filer.write(path, json.dumps({**told, "value": 43}).encode()))
